import numpy as np

from keras_bert_impl.models.head_settings import LabelUnits


def test_only_the_head_is_in_other_units_and_keeps_its_type():
    units, weight = LabelUnits(10.0, 4.0), np.float32([[0.5, -1.0]])
    np.testing.assert_array_equal(units.fold("classifier/dense/kernel", weight), 4 * weight)
    np.testing.assert_array_equal(units.fold("classifier/dense/bias", weight), 4 * weight + 10)
    assert units.fold("classifier/dense/bias", weight).dtype == np.float32
    assert units.fold("pooler/dense/bias", weight) is weight
    for path in ("classifier/dense/kernel", "classifier/dense/bias", "pooler/dense/bias"):
        np.testing.assert_array_equal(units.unfold(path, units.fold(path, weight)), weight)
