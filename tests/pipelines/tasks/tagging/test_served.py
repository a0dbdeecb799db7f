"""Served entities, held to those that the task finds offline, windows and all."""

import functools
import unicodedata

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.register import open_task_model
from pipelines.tasks.tagging.answers import laid_out
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.schemes import BIOES, IOB2
from pipelines.tasks.tagging.task import TaggingTask
from tests.support.model_folders import WORD_VOCABULARY, write_tagger

pytestmark = pytest.mark.slow

WORDS = ["the", "dog", "cats", "a.list", "values", ".", "\u200b", "é,", "?", "😀dog"]
SYLLABLES = ["각가", "가각"]  # which a tokenizer without accents takes apart: tokens share them
FIRST, *OTHERS = unicodedata.normalize("NFD", "각")
VOCABULARY = Vocabulary([*WORD_VOCABULARY.tokens, FIRST, *(f"##{x}" for x in (FIRST, *OTHERS))])
LENGTH = 9


def documents(unit, count=40):
    """Documents of one to three sentences, some longer than a window, with odd words."""
    draw, made = np.random.default_rng(5), []
    for _ in range(count):
        sentences = []
        for _ in range(draw.integers(1, 4)):
            words = WORDS + SYLLABLES if unit == "characters" else WORDS
            items = draw.choice(words, draw.integers(1, 12)).tolist()
            if unit == "characters":
                items = list(" ".join(items))
            numbers = tuple(range(1, len(items) + 1))
            sentences.append(Sentence(tuple(items), None, tuple(items), numbers))
        made.append(Document(tuple(sentences)))
    return made


@pytest.fixture(scope="module")
def open_tagger(tmp_path_factory):
    """Gives the task, the opened model and the served one; each is made once."""

    @functools.cache
    def made(scheme, unit):
        folder, labels = tmp_path_factory.mktemp("tagger") / "model", scheme.tags(["LOC", "PER"])
        task = TaggingTask(labels, scheme, unit)
        write_tagger(folder, labels, VOCABULARY)
        opened = open_task_model(folder, task, do_lower_case=True)
        opened.model.config = with_task_settings(opened.model.config, {"max_seq_length": LENGTH})
        return task, opened, task.served(opened, None)

    return made


def offline(task, opened, made):
    rows = task.rows(made, Tokenizer(opened.text), LENGTH)
    padded = rows.padded(LENGTH)
    names = ("input_ids", "input_mask", "segment_ids")
    logits = np.asarray(opened.model({name: padded[name] for name in names})["logits"])
    real = np.arange(LENGTH) < rows.lengths[:, None]
    return [given.entities for given in task.answers(made, rows, {"logits": logits[real]})]


def entities_of(outputs):
    rows = {name: np.asarray(values) for name, values in outputs.items()}
    return [
        [
            (
                rows["type"][text, n].decode(),
                rows["text"][text, n].decode(),
                int(rows["start"][text, n]),
                int(rows["end"][text, n]),
                pytest.approx(float(rows["score"][text, n]), abs=1e-5),
            )
            for n in range(rows["count"][text])
        ]
        for text in range(len(rows["count"]))
    ]


@pytest.mark.parametrize(("scheme", "unit"), [(IOB2, "words"), (BIOES, "characters")])
def test_served_entities_are_the_offline_ones(open_tagger, scheme, unit):
    task, opened, served = open_tagger(scheme, unit)
    made = documents(unit)
    expected = offline(task, opened, made)
    assert sum(map(len, expected)) > 40
    texts = [laid_out(document, unit)[0] for document in made]
    found = entities_of(served.call("text", {"text": texts}))
    assert [[tuple(entity) for entity in entities] for entities in expected] == found
    for text, entities in zip(texts, found, strict=True):
        assert [text[entity[2] : entity[3]] for entity in entities] == [x[1] for x in entities]
        ends = [0, *(entity[3] for entity in entities)]
        assert all(entity[2] >= end for entity, end in zip(entities, ends, strict=False))


def test_entities_of_raw_text_end_in_front_of_marks(open_tagger):
    _, _, served = open_tagger(IOB2, "words")
    text = '"The dog," (a list). Values!'
    apart = '" The dog , " ( a list ) . Values !'
    found = entities_of(served.call("raw_text", {"text": [text]}))[0]
    expected = entities_of(served.call("text", {"text": [apart]}))[0]
    assert [entity[0] for entity in found] == [entity[0] for entity in expected]
    assert [text[x[2] : x[3]] for x in found] == [x[1] for x in found]
    blank_free = [x[1].replace(" ", "") for x in expected]
    assert [x[1].replace(" ", "") for x in found] == blank_free
