"""Weight decay leaves out exactly what the original leaves out, for every variable of the model."""

import re

from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.optimizers.decay_rules import is_decayed
from tests.support.tiny_bert import TINY

LEFT_OUT = re.compile("LayerNorm|layer_norm|bias")  # of the original's names


def test_every_variable_is_decayed_or_not_as_under_its_original_name():
    model = BertPretrainer(TINY)
    names = {each.ours: each.google for each in names_of(model)}
    paths = [variable.path for variable in model.trainable_variables]
    assert sorted(names) == sorted(paths)
    assert {p: is_decayed(p) for p in paths} == {p: not LEFT_OUT.search(names[p]) for p in paths}
    assert not is_decayed(next(p for p, name in names.items() if name.endswith("output_bias")))
