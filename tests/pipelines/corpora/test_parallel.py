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
