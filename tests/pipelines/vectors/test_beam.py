"""Texts to vectors on Beam's DirectRunner."""

import pickle

import numpy as np
import pytest

from keras_bert_impl.serving.embedder import Embedder
from pipelines.vectors.options import VectorModelConfig
from tests.pipelines.vectors.conftest import TEXTS

embed_on_beam = pytest.importorskip("pipelines.vectors.beam", reason="needs the extra `beam`")


class Opened:
    """Stands in for the model: counts how often it was opened, and what was computed together."""

    count = 0
    calls: list[list[str]] = []  # noqa: RUF012  # one for all, as a process has

    def __init__(self, config, texts):
        del config, texts
        type(self).count += 1
        self.texts_at_once = 3

    def embed(self, texts, dimensions):
        assert dimensions is None
        self.calls.append(texts)
        return np.array([[len(text)] for text in texts], np.float32)


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(embed_on_beam, "open_embedder", Opened)
    Opened.count, Opened.calls = 0, []
    return Opened


def copies(count, text_of=None):
    """The function as workers get it, set up."""
    made = embed_on_beam.EmbedBundle(VectorModelConfig(model="a model"), text_of)
    found = [pickle.loads(pickle.dumps(made)) for _ in range(count)]
    for one in found:
        one.setup()
        one.start_bundle()
    return found


@pytest.mark.slow
def test_a_pipeline_gives_the_embedders_vectors(model):
    import apache_beam as beam
    from apache_beam.testing.util import assert_that

    embedder = Embedder.from_pretrained(model, deterministic=True)
    expected = dict(zip(TEXTS, embedder.embed(TEXTS), strict=True))
    config = VectorModelConfig(model=model, deterministic=True)

    def check(found):
        assert len(found) == len(TEXTS)
        for row, vector in found:
            np.testing.assert_array_equal(vector, expected[row["text"]])

    with beam.Pipeline(runner="DirectRunner") as pipeline:
        rows = pipeline | beam.Create([{"text": text} for text in TEXTS])
        vectors = rows | embed_on_beam.Embed(config, lambda row: row["text"])
        assert_that(vectors, check)


def test_all_copies_in_a_process_share_one_model(opened):
    first, second = copies(2)
    first.teardown()
    second.teardown()
    second.setup()  # as for a thread that comes later
    assert opened.count == 1
    copies(1)  # another function, which may be of another model
    assert opened.count == 2


def test_no_more_texts_wait_than_are_computed_together(opened, monkeypatch):
    (function,) = copies(1)
    made = [len(list(function.process(text, 0, "window"))) for text in ["a", "bb", "ccc", "dddd"]]
    assert made == [0, 0, 3, 0]
    assert [one.value[0] for one in function.finish_bundle()] == ["dddd"]
    assert list(function.finish_bundle()) == []
    monkeypatch.setattr(embed_on_beam, "_MOST_CHARACTERS", 10)
    assert [len(list(function.process(text, 0, "window"))) for text in ("a" * 9, "b")] == [0, 2]
    assert opened.calls == [["a", "bb", "ccc"], ["dddd"], ["a" * 9, "b"]]


def test_an_element_keeps_its_window_and_its_timestamp(opened):
    (function,) = copies(1, text_of=str)
    for number in (11, 222):
        assert list(function.process(number, number + 0.5, f"window of {number}")) == []
    first, second = function.finish_bundle()
    assert (first.timestamp, first.windows) == (11.5, ("window of 11",))
    assert (second.value[0], second.value[1].tolist()) == (222, [3.0])
    assert second.windows == ("window of 222",)
