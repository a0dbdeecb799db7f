import asyncio
import threading
import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest

from keras_bert_impl.serving.answerer import Input, Prepared
from keras_bert_impl.serving.http.answer_cache import AnswerCache, Known
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.batching import Batcher
from keras_bert_impl.serving.http.bodies import RequestError
from keras_bert_impl.serving.http.config import ServerConfig
from tests.support.asgi_client import ask
from tests.support.toy_answerer import ToyAnswerer, ToyModel


@dataclass
class WindowsOfFour(ToyAnswerer):
    """Reads texts in windows of four characters; says how many characters were more than ten."""

    options: tuple = (Input("input_type", needed=False),)
    asked: list = field(default_factory=list)

    def prepare(self, instances):
        self.asked += [one["text"] for one in instances]
        parts = [
            [one["text"][at : at + 4] for at in range(0, len(one["text"]), 4)] for one in instances
        ]
        rows = super().prepare([{"text": part} for some in parts for part in some]).rows
        cut = [max(0, len(one["text"]) - 10) for one in instances]
        return Prepared(rows, (instances, [*map(len, parts)]), cut)

    def finish(self, prepared, outputs):
        instances, counts = prepared.state
        sums = np.add.reduceat([one["sum"] for one in outputs], np.cumsum([0, *counts[:-1]]))
        kinds = [one.get("input_type") for one in instances]
        return [
            {"score": s / 3, "kind": kind} for s, kind in zip(sums.tolist(), kinds, strict=True)
        ]


class Steps:
    """In place of a figure: keeps each step."""

    def __init__(self):
        self.steps = []

    def inc(self, step):
        self.steps.append(step)


def given(requests, most_bytes):
    """The answers to requests, what was found and missed, and what was computed."""
    answerer, counts = WindowsOfFour(), [Steps(), Steps()]
    batcher = Batcher(
        answerer, 1000, cache=AnswerCache(most_bytes, *counts) if most_bytes else None
    )

    async def body():
        return [await batcher.ask(some) for some in requests]

    try:
        return asyncio.run(body()), [one.steps for one in counts], answerer
    finally:
        batcher.close()


def texts(*some, **options):
    return [{"text": text, **options} for text in some]


REQUESTS = [
    texts("abcde", "a longer text"),
    texts("another one", "a longer text", "x", "abcde"),
    texts("abcde", input_type="query"),
    texts("abcde", input_type=None),
    texts(*map(str, range(33))),  # large ones are looked up part by part
    texts("34", *map(str, range(32))),
]


def test_answers_are_those_without_a_cache_and_only_what_is_missing_is_computed():
    answered, counts, answerer = given(REQUESTS, 1 << 20)
    assert answered == given(REQUESTS, 0)[0]
    assert [sum(some) for some in counts] == [2 + 1 + 32, 2 + 2 + 1 + 33 + 1]
    assert answerer.asked[-1] == "34"
    assert len(answerer.asked) == sum(counts[1])  # nothing is cut twice


def test_the_event_loop_looks_no_large_request_up_and_refused_ones_are_not_counted():
    counts, loops = [Steps(), Steps()], []

    class Watched(AnswerCache):
        def find(self, model, instances):
            loops.append((len(instances), threading.current_thread() is threading.main_thread()))
            return super().find(model, instances)

    batcher = Batcher(ToyAnswerer(seconds=0.02), 40, cache=Watched(1 << 20, *counts))

    async def body():
        asked = [batcher.ask(texts("a")), batcher.ask(texts(*["b"] * 33))]
        with pytest.raises(RequestError):
            batcher.ask(texts(*["c"] * 30))
        await asyncio.gather(*asked)

    try:
        asyncio.run(body())
    finally:
        batcher.close()
    assert sum(map(sum, (one.steps for one in counts))) == 1 + 33
    assert all(count < 33 for count, is_of_loop in loops if is_of_loop)
    assert any(not is_of_loop for _, is_of_loop in loops)


def test_what_was_not_asked_for_longest_goes_first():
    cache = AnswerCache(1100, Steps(), Steps())
    for text in "abcd":
        cache.find(1, texts("a"))
        cache.keep(1, {"text": text}, Known({"score": 0.5}, 3, 0))
    assert cache.size <= 1100
    assert [one is not None for one in cache.find(1, texts(*"abcd"))] == [True, False, True, True]
    cache.keep(1, {"text": "e"}, Known({"score": "x" * 2000}, 3, 0))
    assert [one is None for one in cache.find(1, texts("e", "d"))] == [True, False]


def test_the_bytes_that_it_says_are_those_that_it_holds():
    cache = AnswerCache(1 << 20, Steps(), Steps())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1000):
            cache.keep(1, {"text": str(number)}, Known({"score": 0.5}, 3, 0))
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 < held / cache.size < 1.1


def test_models_and_later_versions_have_answers_of_their_own():
    cache, known = AnswerCache(1 << 20, Steps(), Steps()), Known({"score": 1.0}, 1, 0)
    cache.keep(1, {"text": "a"}, known)
    assert cache.find(1, texts("a")) == [known]
    assert cache.find(2, texts("a")) == [None]


@pytest.mark.parametrize(("mebibytes", "found"), [(0, "0.0"), (1, "1.0")])
def test_the_rate_of_hits_stands_in_the_figures(mebibytes, found):
    app = make_app({"toy": ToyModel()}, ServerConfig(cache_mebibytes=mebibytes))
    body = {"instances": ["abc"]}
    first, second = (ask(app, "POST", "/v1/models/toy:predict", body) for _ in range(2))
    assert first.json() == second.json() == {"predictions": [3.0]}
    figures = ask(app, "GET", "/metrics").body.decode()
    lines = dict(line.rsplit(" ", 1) for line in figures.splitlines())
    assert lines.get("keras_bert_cache_hits_total") == found
    assert lines.get("keras_bert_cache_misses_total") == found
    assert (float(lines["keras_bert_cache_bytes"]) > 0) == bool(mebibytes)
