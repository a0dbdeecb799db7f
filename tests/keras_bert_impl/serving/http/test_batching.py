import asyncio
import random
import threading
import time
from unittest.mock import Mock

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.http import batching
from keras_bert_impl.serving.http.answer_cache import AnswerCache
from keras_bert_impl.serving.http.batching import Batcher
from keras_bert_impl.serving.http.bodies import RequestError
from tests.support.toy_answerer import ToyAnswerer

TEXTS = ["a" * length for length in (1, 2, 3, 4, 5, 30, 31, 32)]


def instances(*texts):
    return [{"text": text} for text in texts]


async def scores(batcher, *texts):
    return [one["score"] for one in (await batcher.ask(instances(*texts))).answers]


def run(answerer, body, most=1000, observer=None):
    batcher = Batcher(answerer, most, observer)
    try:
        return asyncio.run(body(batcher))
    finally:
        batcher.close()


def test_one_request_is_answered_with_its_tokens():
    async def body(batcher):
        answered = await batcher.ask(instances("abc", "de"))
        assert answered.answers == [{"score": 3.0}, {"score": 2.0}]
        assert answered.tokens == 5

    run(ToyAnswerer(), body)


def test_one_client_alone_never_waits_for_others():
    answerer = ToyAnswerer()

    async def body(batcher):
        for text in TEXTS:
            assert await scores(batcher, text) == [len(text)]

    run(answerer, body)
    assert answerer.sizes == [1] * len(TEXTS)


@pytest.mark.parametrize("batches_at_once", [1, 3])
def test_requests_gather_while_the_engine_is_busy(batches_at_once):
    answerer = ToyAnswerer(seconds=0.01, tokens_at_once=500, batches_at_once=batches_at_once)

    async def body(batcher):
        texts = TEXTS * 25
        given = await asyncio.gather(*(scores(batcher, text) for text in texts))
        assert given == [[float(len(text))] for text in texts]

    run(answerer, body)
    assert sum(answerer.sizes) == 200
    assert max(answerer.sizes) > 10


def test_no_batch_exceeds_the_budget():
    positions = list[int]()

    async def body(batcher):
        await asyncio.gather(*(scores(batcher, text) for text in TEXTS * 20))

    run(ToyAnswerer(seconds=0.002), body, observer=lambda batch: positions.append(batch.positions))
    assert max(positions) <= 64
    assert sum(positions) >= 20 * sum(map(len, TEXTS))


class BusyAtFirst(ToyAnswerer):
    """Is busy with its first batch until what waits is prepared."""

    prepared, begun = 0, False

    def prepare(self, instances):
        prepared = super().prepare(instances)
        self.prepared += sum(len(row["input_ids"]) for row in prepared.rows)
        return prepared

    def compute(self, rows):
        until = time.monotonic() + 5 * (not self.begun)
        self.begun = True
        while self.prepared < 15_000 and time.monotonic() < until:
            time.sleep(0.01)
        return super().compute(rows)


def test_with_many_waiting_hardly_any_padding_is_computed():
    batches = []

    async def body(batcher):
        # Lengths as texts have them: many short ones, few long ones.
        lengths = [int(1.006**number) for number in range(800)]
        random.Random(1).shuffle(lengths)
        await asyncio.gather(*(scores(batcher, "a" * length) for length in lengths))

    run(BusyAtFirst(tokens_at_once=512), body, observer=batches.append)
    tokens = sum(batch.tokens for batch in batches)
    assert tokens > 0.94 * sum(batch.positions for batch in batches)


def test_what_comes_on_top_of_the_queue_is_refused_with_a_time_to_come_back():
    async def body(batcher):
        waiting = [batcher.ask(instances("a")) for _ in range(4)]
        with pytest.raises(RequestError) as refused:
            batcher.ask(instances("a"))
        assert refused.value.status_code == 429
        assert int(refused.value.headers["Retry-After"]) >= 1
        await asyncio.gather(*waiting)
        assert await scores(batcher, "abc") == [3.0]

    run(ToyAnswerer(seconds=0.02), body, most=4)


def test_a_large_request_shuts_no_small_one_out():
    async def body(batcher):
        large = batcher.ask(instances(*["a"] * 90))
        small = [batcher.ask(instances("abc")) for _ in range(23)]
        with pytest.raises(RequestError):
            batcher.ask(instances("abc"))
        assert len((await large).answers) == 90
        await asyncio.gather(*small)
        assert batcher.waiting == 0

    run(ToyAnswerer(seconds=0.02), body, most=30)


def test_very_large_texts_are_cut_one_after_the_other(monkeypatch):
    monkeypatch.setattr(batching, "_LARGE", 100)
    inside, most = [], []

    class Slow(ToyAnswerer):
        def prepare(self, instances):
            inside.append(instances)
            time.sleep(0.02)
            most.append(len(inside))
            inside.pop()
            return super().prepare(instances)

    async def body(batcher):
        await asyncio.gather(*(scores(batcher, "a" * 101) for _ in range(6)))

    run(Slow(batches_at_once=3), body)
    assert most == [1] * 6


def test_nothing_is_taken_that_would_wait_too_long():
    async def body(batcher):
        for _ in range(20):
            await scores(batcher, "a" * 60)  # now it is known how long a row takes
        waiting, statuses = [], []
        for _ in range(20):
            try:
                waiting.append(batcher.ask(instances("a" * 60)))
            except RequestError as refused:
                statuses.append(refused.status_code)
        assert set(statuses) == {429}
        assert 1 < len(waiting) < 19
        await asyncio.gather(*waiting)

    batcher = Batcher(ToyAnswerer(seconds=0.02), 1000, most_seconds=0.08)
    asyncio.run(body(batcher))
    batcher.close()


def test_a_request_of_more_than_may_wait_is_taken_where_none_waits():
    async def body(batcher):
        assert await scores(batcher, *["ab"] * 9) == [2.0] * 9

    run(ToyAnswerer(), body, most=4)


def test_a_bad_instance_fails_alone():
    async def body(batcher):
        good, bad = batcher.ask(instances("a")), batcher.ask([{"text": None}])
        with pytest.raises(RequestError, match="instance 1: has no `text`") as refused:
            await bad
        assert refused.value.status_code == 400
        assert (await good).answers == [{"score": 1.0}]

    run(ToyAnswerer(seconds=0.01), body)


@pytest.mark.parametrize("cache", [None, AnswerCache(1, Mock(), Mock())])
def test_a_bad_instance_of_a_large_request_is_counted_in_all_of_it_and_no_more_is_prepared(cache):
    counts = []

    class Counting(ToyAnswerer):
        def prepare(self, instances):
            counts.append(len(instances))
            return super().prepare(instances)

    async def body(batcher):
        with pytest.raises(RequestError, match="instance 70: has no `text`"):
            await batcher.ask([*instances(*["a"] * 69), {"text": None}, *instances("a", "a")])

    batcher = Batcher(Counting(), 1000, cache=cache)
    asyncio.run(body(batcher))
    batcher.close()
    assert max(counts) <= 32


class Poisoned(ToyAnswerer):
    """Fails at every batch with a text of seven characters."""

    def compute(self, rows):
        if any(row["input_ids"].size == 7 for row in rows):
            raise RuntimeError("/secret/path is broken")
        return super().compute(rows)


def test_a_request_at_which_the_model_fails_fails_alone_and_tells_no_path(caplog):
    async def body(batcher):
        asked = [batcher.ask(instances("a" * length)) for length in (6, 7, 8) * 3]
        given = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, RequestError) for one in given] == [False, True, False] * 3
        assert {one.status_code for one in given[1::3]} == {500}
        assert "secret" not in str(given[1])

    run(Poisoned(seconds=0.005), body)
    assert "/secret/path is broken" in caplog.text


def test_cancelled_requests_are_dropped_and_make_room():
    answerer = ToyAnswerer(seconds=0.1)

    async def body(batcher):
        first = batcher.ask(instances("abc"))
        await asyncio.sleep(0.03)
        dropped = [batcher.ask(instances("abcd")) for _ in range(3)]
        for one in dropped:
            one.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        last = batcher.ask(instances("abcde"))
        await asyncio.gather(first, last)

    run(answerer, body, most=4)
    assert answerer.sizes == [1, 1]


def test_a_short_request_passes_the_later_rows_of_a_long_one():
    async def body(batcher):
        long = batcher.ask(instances(*["a" * 60] * 40))
        await asyncio.sleep(0.03)
        await batcher.ask(instances("b" * 60))
        assert not long.done()
        await long

    run(ToyAnswerer(seconds=0.01), body)


def test_closing_answers_what_waits():
    batcher = Batcher(ToyAnswerer(seconds=0.02), 100)

    async def body():
        asked = [batcher.ask(instances("a" * 40)) for _ in range(6)]
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        given = await asyncio.gather(*asked)
        await closing
        with pytest.raises(RequestError) as refused:
            batcher.ask(instances("a"))
        assert refused.value.status_code == 503
        return given

    assert len(asyncio.run(body())) == 6
    assert batcher.waiting == 0


def test_the_event_loop_never_waits_for_the_model():
    async def body(batcher):
        asked = batcher.ask(instances("a"))
        longest, before = 0.0, time.perf_counter()
        while not asked.done():
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.perf_counter() - before), time.perf_counter()
        assert longest < 0.2

    run(ToyAnswerer(seconds=0.4), body)


def test_threads_end_with_the_batcher():
    before = threading.active_count()
    Batcher(ToyAnswerer(batches_at_once=3), 10).close()
    assert threading.active_count() == before


def test_an_error_in_what_undoes_rows_is_told_as_the_servers_own():
    class Broken(ToyAnswerer):
        def finish(self, prepared, outputs):
            raise UserError("model/config.json: is broken.")

    async def body(batcher):
        with pytest.raises(RequestError) as refused:
            await batcher.ask(instances("a"))
        assert refused.value.status_code == 500
        assert "config.json" not in str(refused.value)

    run(Broken(), body)


class Logging(ToyAnswerer):
    """Takes as long as a batch has positions; keeps of each batch the lengths of its rows."""

    def __init__(self, seconds_a_position, preparing=0, **more):
        super().__init__(tokens_at_once=1024, **more)
        self.pace, self.preparing, self.batches = seconds_a_position, preparing, []

    def prepare(self, instances):
        time.sleep(self.preparing * len(instances))
        return super().prepare(instances)

    def compute(self, rows):
        lengths = [row["input_ids"].size for row in rows]
        self.batches.append(lengths)
        time.sleep(self.pace * max(lengths) * len(lengths))
        return super().compute(rows)


@pytest.mark.parametrize("batches_at_once", [1, 2])
def test_beside_greedy_clients_a_small_one_waits_only_for_what_is_being_computed(batches_at_once):
    answerer, batches_waited = Logging(4e-6, batches_at_once=batches_at_once), []

    async def greedy(batcher):
        while len(batches_waited) < 40:
            await batcher.ask(instances(*["a" * (10 + number % 20) for number in range(2048)]))

    async def small(batcher):
        await asyncio.sleep(0.03)
        for _ in range(40):
            begun = len(answerer.batches)
            await scores(batcher, "a" * 7)
            own = next(n for n, batch in enumerate(answerer.batches[begun:]) if 7 in batch)
            batches_waited.append(own)

    async def body(batcher):
        await asyncio.gather(small(batcher), *(greedy(batcher) for _ in range(3)))

    run(answerer, body, most=2048)
    # None begins before its own; of two at once the other may, while the text is prepared.
    assert sorted(batches_waited)[20] < batches_at_once
    assert sorted(batches_waited)[38] <= 3
    large = [sum(batch) for batch in answerer.batches if 7 not in batch]
    assert len(large) >= len(batches_waited)
    assert sum(large) > 0.6 * 1024 * len(large)  # and the engine is full between


@pytest.mark.parametrize("preparing", [0, 2e-4])
def test_small_requests_cannot_keep_a_large_one_from_its_turn(preparing):
    answerer, done = Logging(1e-6, preparing=preparing), []

    async def small(batcher):
        while not done:
            await scores(batcher, "a" * 60)

    async def body(batcher):
        others = [asyncio.create_task(small(batcher)) for _ in range(200)]
        try:
            await asyncio.wait_for(batcher.ask(instances(*["a" * 50] * 100)), 3)
        finally:
            done.append(True)
            await asyncio.gather(*others)

    run(answerer, body)
    own = [number for number, batch in enumerate(answerer.batches) if 50 in batch]
    assert own[-1] - own[0] < 10 * len(own)


class Clocked(ToyAnswerer):
    """Takes a second for so many positions by a clock of its own; waits until it may begin."""

    def __init__(self, positions_a_second):
        super().__init__(tokens_at_once=1024)
        self.pace, self.now, self.may_begin = positions_a_second, 0.0, threading.Event()

    def compute(self, rows):
        self.may_begin.wait(20)
        self.now += max(row["input_ids"].size for row in rows) * len(rows) / self.pace
        return super().compute(rows)


@pytest.mark.parametrize(("most_seconds", "refuses"), [(60, False), (15, True)])
def test_of_500_clients_only_those_are_refused_who_would_wait_too_long(
    monkeypatch, most_seconds, refuses
):
    lengths = [int(1.0125**number) for number in range(500)]  # 1 to 490
    random.Random(1).shuffle(lengths)
    answerer, accepted, refused = Clocked(sum(lengths) / 40), [], []
    monkeypatch.setattr(batching, "_clock", lambda: answerer.now)

    async def client(batcher, length, asked):
        try:
            await scores(batcher, "a" * length)
            accepted.append(answerer.now - asked)
        except RequestError as fault:
            refused.append(int(fault.headers["Retry-After"]))

    async def body(batcher):
        answerer.may_begin.set()
        await batcher.ask(instances(*["a" * 100] * 250))  # now it is known how fast it goes
        answerer.may_begin.clear()
        clients = [client(batcher, length, answerer.now) for length in lengths]
        asked = asyncio.gather(*clients)
        await asyncio.sleep(0.01)
        answerer.may_begin.set()
        await asked

    batcher = Batcher(answerer, 2048, most_seconds=most_seconds)
    asyncio.run(body(batcher))
    batcher.close()
    assert bool(refused) == refuses
    assert max(accepted) < most_seconds * 1.5
    assert len(accepted) > 100
    for seconds in refused:
        assert max(accepted) / 1.5 < seconds < max(accepted) * 1.5


class Held(ToyAnswerer):
    """Is held at each batch, or at each text of so many characters, until it may go on."""

    def __init__(self, at=None, **more):
        super().__init__(**more)
        self.at, self.may_go_on = at, threading.Event()

    def prepare(self, instances):
        if self.at and max(len(one["text"]) for one in instances) >= self.at:
            self.may_go_on.wait(5)
        return super().prepare([{"text": one["text"][:50]} for one in instances])

    def compute(self, rows):
        if self.at is None:
            self.may_go_on.wait(5)
        return super().compute(rows)


def statuses(batcher, requests):
    """Asks; gives 200 for what waits, else why it does not."""
    for texts in requests:
        try:
            batcher.ask(instances(*texts))
            yield 200
        except RequestError as refused:
            yield refused.status_code


MIDDLE, LONG = ["a"] * 33, ["a" * 16_400]


@pytest.mark.parametrize(
    ("most_characters", "before", "then"),
    [
        (1 << 28, [["a"] * 2048] * 4 + [MIDDLE] * 8, [200] * 3 + [429] + [200] * 7 + [429]),
        (20_000, [["a"] * 10, LONG, LONG, ["a"] * 10], [200, 200, 429, 200]),
        (20_000, [LONG * 2, LONG, ["a"]], [200, 429, 200]),
    ],
)
def test_what_waits_leaves_room_for_smaller_requests(monkeypatch, most_characters, before, then):
    monkeypatch.setattr(batching, "_MOST_CHARACTERS", most_characters)
    answerer = Held(tokens_at_once=4096)

    async def body(batcher):
        assert [*statuses(batcher, before)] == then
        if most_characters > 20_000:  # beside the greedy ones
            assert [*statuses(batcher, [LONG, ["a"]])] == [200, 200]
        answerer.may_go_on.set()
        while batcher.waiting:
            await asyncio.sleep(0.005)

    run(answerer, body, most=2048)


@pytest.mark.parametrize("batches_at_once", [1, 3])
@pytest.mark.parametrize("large", [20_000, 1 << 20])
def test_long_texts_that_are_being_cut_hold_no_small_request_up(
    monkeypatch, batches_at_once, large
):
    monkeypatch.setattr(batching, "_LARGE", large)
    answerer = Held(at=20_000, batches_at_once=batches_at_once)

    async def body(batcher):
        long = []
        for _ in range(6):
            long.append(batcher.ask(instances("a" * 20_000)))
            await asyncio.sleep(0.005)
        try:
            assert await asyncio.wait_for(scores(batcher, "abc"), 1) == [3.0]
            assert not any(one.done() for one in long)
        finally:
            answerer.may_go_on.set()
            await asyncio.gather(*long)

    run(answerer, body)


def test_what_a_large_request_is_told_is_when_it_is_answered(monkeypatch):
    answerer, done, large = Clocked(1024), [], instances(*["a" * 60] * 200)
    monkeypatch.setattr(batching, "_clock", lambda: answerer.now)

    async def small(batcher):
        while not done:
            await scores(batcher, "a" * 60)

    async def told_and_true(batcher):
        asked = batcher.ask(large)
        told, begun = batcher.retry_after(asked), answerer.now
        await batcher.ask(large)
        return told, answerer.now - begun

    async def body(batcher):
        answerer.may_begin.set()
        await asyncio.gather(*(batcher.ask(large) for _ in range(2)))
        alone = await told_and_true(batcher)
        others = [asyncio.create_task(small(batcher)) for _ in range(100)]
        await asyncio.sleep(0.05)
        beside = await told_and_true(batcher)
        done.append(True)
        await asyncio.gather(*others)
        answerer.may_begin.clear()
        begun, greedy = answerer.now, [batcher.ask(large * 5) for _ in range(3)]
        with pytest.raises(RequestError) as refused:
            batcher.ask(large * 2)
        answerer.may_begin.set()
        await asyncio.wait(greedy, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*greedy)
        ended = answerer.now - begun
        return alone, beside, (int(refused.value.headers["Retry-After"]), ended)

    for told, true in run(answerer, body, most=1200):
        assert true / 1.6 < told < true * 1.6
