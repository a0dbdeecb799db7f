"""One list of cases for both implementations; the reference is the rule as it is told."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.tokenization.packing import truncated_lengths


def in_numpy(length_a, length_b, budget):
    return truncated_lengths(length_a, length_b, budget)


def in_graph(length_a, length_b, budget):
    tensors = (tf.constant(x, tf.int32) for x in (length_a, length_b, budget))
    return tuple(
        x.numpy() for x in tf.function(lambda *each: truncated_lengths(*each, tf))(*tensors)
    )


BOTH = pytest.mark.parametrize("truncate", [in_numpy, in_graph])


def one_at_a_time(length_a, length_b, budget):
    while length_a + length_b > budget:
        if length_a > length_b:
            length_a -= 1
        else:
            length_b -= 1
    return length_a, length_b


@BOTH
def test_all_small_pairs_are_truncated_as_one_token_at_a_time_would(truncate):
    pairs = np.array([(a, b, n) for a in range(13) for b in range(13) for n in range(25)], np.int64)
    a, b = truncate(*pairs.T)
    assert np.stack([a, b], axis=1).tolist() == [list(one_at_a_time(*row)) for row in pairs]
