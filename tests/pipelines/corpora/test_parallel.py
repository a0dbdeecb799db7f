import os
import signal

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.parallel import in_order


def refuse(name):
    raise UserError(f"{name}: is bad; mend it.")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_results_come_in_the_order_of_the_work(num_workers):
    assert list(in_order(abs, range(-50, 0), num_workers)) == list(range(50, 0, -1))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_workers_error_reaches_the_user(num_workers):
    with pytest.raises(UserError, match="x: is bad; mend it"):
        list(in_order(refuse, ["x"] * 20, num_workers))


def test_work_is_read_as_it_is_needed():
    read = []
    results = in_order(abs, (read.append(n) or n for n in range(100)), num_workers=2)
    next(results)
    assert len(read) <= 6
    results.close()


def be_killed_at_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_a_sentence_that_asks_for_fewer():
    sentence = (
        r"^A worker process was killed, perhaps for want of memory; "
        r"run the same command again with a smaller --num_workers\.$"
    )
    with pytest.raises(UserError, match=sentence):
        list(in_order(be_killed_at_three, range(50), num_workers=2))
