"""What waits: each instance is in one part, parts are small, the pace is that of the engine."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.http.waiting import Line, Pace, Request, size_of


def request_of(texts, answers=None):
    loop = asyncio.new_event_loop()
    answer = loop.create_future()
    loop.close()
    made = Request(
        [{"text": one} for one in texts], loop, answer, answers or [None] * len(texts), []
    )
    made.divide()
    return made


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9000), min_size=1, max_size=80), st.data())
def test_each_instance_without_an_answer_is_in_one_part_and_parts_are_small(lengths, data):
    known = [data.draw(st.sampled_from([None, "known"])) for _ in lengths]
    request = request_of(["a" * length for length in lengths], [*known])
    numbers = [number for part in request.parts for number in part.numbers]
    assert numbers == [number for number, one in enumerate(known) if one is None]
    for part in request.parts:
        assert part.characters == sum(map(size_of, part.instances))
        assert len(part.numbers) <= 32
        assert part.characters <= 16_384 or len(part.numbers) == 1
    assert request.characters == sum(part.characters for part in request.parts)


@pytest.mark.parametrize(
    ("texts", "is_small"), [(["a"] * 32, True), (["a"] * 33, False), (["a" * 16_377], False)]
)
def test_a_request_is_small_by_its_instances_and_its_characters(texts, is_small):
    assert request_of(texts).is_small == is_small


def test_parts_of_large_requests_take_turns_and_what_is_dropped_leaves_nothing():
    line, requests = Line(), [request_of(["a"] * 70) for _ in range(2)]
    for request in requests:
        line.add(request)
    turns = [part.request for _ in range(4) for part in line.take_parts(lambda _: True)]
    assert [requests.index(one) for one in turns] == [0, 1, 0, 1]
    for request in requests:
        line.drop(request)
    assert (line.characters, line.counted, len(line.unprepared), line.requests) == (0, 0, 0, {})


def test_batches_at_the_same_time_are_counted_once():
    pace = Pace()
    for started in (0.0, 1.0, 2.0):
        for _ in range(2):  # two at once, of a second each
            pace.computed(100, started, started + 1)
    assert pace.seconds(400) == pytest.approx(2, rel=0.1)


def test_tokens_of_texts_are_learned_from_those_that_were_prepared():
    pace = Pace()
    assert pace.tokens(100) == 25
    for _ in range(50):
        pace.prepared(500, 1000)
    assert pace.tokens(100) == pytest.approx(50)
