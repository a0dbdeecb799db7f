import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.phases import Phase, PhasedBatches
from tests.support.array_batches import ArrayBatches


def phased():
    def source(first, rows):
        return ArrayBatches({"x": np.arange(first, first + 100)}, rows, seed=1, shuffle=False)

    return PhasedBatches([Phase(source(0, 4), 3, 1e-4), Phase(source(1000, 2), 2, 1e-5)])


def read(step, count):
    return [batch["x"].tolist() for batch in itertools.islice(phased().batches_from(step), count)]


def test_each_phase_begins_at_the_start_of_its_own_data():
    assert read(2, 3) == [[8, 9, 10, 11], [1000, 1001], [1002, 1003]]


@given(step=st.integers(0, 7))
def test_resuming_anywhere_gives_the_batches_of_the_whole_run(step):
    assert read(step, 3) == read(0, 10)[step : step + 3]


def test_the_boundaries_are_where_phases_end():
    assert phased().boundaries == (3, 5)
