"""Rows computed a few at a time."""

import numpy as np
import pytest
import tensorflow as tf

from pipelines.tasks.questions.served import in_blocks


@pytest.mark.parametrize("rows", [1, 9])
def test_blocks_give_what_one_call_gives_and_no_call_gets_more_rows(rows):
    calls = []

    def function(left, right):
        calls.append(int(tf.shape(left)[0]))
        return {"sum": tf.cast(left + right, tf.float32), "left": tf.cast(left, tf.float32)}

    inputs = [tf.reshape(tf.range(rows * 5), [rows, 5]) * factor for factor in (1, 2)]
    found = in_blocks(function, inputs, ["left", "sum"], rows_at_once=4)
    np.testing.assert_array_equal(found["left"], inputs[0].numpy())
    np.testing.assert_array_equal(found["sum"], 3 * inputs[0].numpy())
    assert max(calls) <= 4
    assert sum(calls) == rows
