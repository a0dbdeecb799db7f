"""The weights of a tiny pre-training model, written as a model directory and read again."""

import numpy as np

from keras_bert_impl.checkpoints.formats.hugging_face import WEIGHTS_FILE
from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.tiny_bert import TINY, scatter_weights


def tensors_of(folder):
    path = folder / WEIGHTS_FILE
    return {name: read_tensor(path, name) for name in read_shapes(path)}


def assert_same_weights(first, second):
    for one, other in zip(first.weights, second.weights, strict=True):
        assert one.path == other.path
        assert np.array_equal(one, other), one.path


def restored(folder):
    model = scatter_weights(BertPretrainer(TINY), seed=5)
    return model, restore(model, folder)


def rewrite(folder, change):
    tensors = tensors_of(folder)
    write_safetensors(folder / WEIGHTS_FILE, change(tensors))
