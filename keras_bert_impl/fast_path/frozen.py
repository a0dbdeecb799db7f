"""A model frozen for inference: its weights cast once, its graph TensorFlow's to fuse."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_bert_impl.fast_path.inference_kernels import InferenceKernels
from keras_bert_impl.layers import kernels


def freeze(model: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Makes the fastest function on a CPU of what a model computes outside of training.

    The weights of the blocks are copied into it, once, in the type that is computed in: it does
    not follow later changes of the model's weights, and has no gradients. Batch and length are
    free in every call.

    Args:
        model: one of this project's models, on TensorFlow.

    Returns:
        A function from a dict of features (what the model does not know is left aside) to the
        model's dict of outputs, as tensors.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import BertConfig
        >>> from keras_bert_impl.models.encoder import BertEncoder
        >>> encoder = BertEncoder(BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2,
        ...                                  num_hidden_layers=1, intermediate_size=16))
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> features = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}
        >>> freeze(encoder)(features)["pooled_output"].shape.as_list()
        [1, 8]
    """
    signature = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in model.input.items()
    }

    @tf.function(autograph=False)
    def forward(features: Any) -> Any:
        return dict(model(features, training=False))

    with kernels.use(InferenceKernels()):
        traced = forward.get_concrete_function(signature)

    def compute(features: Mapping[str, Any]) -> dict[str, Any]:
        known = {
            name: tf.cast(tf.convert_to_tensor(features[name]), spec.dtype)
            for name, spec in signature.items()
        }
        return traced(known)

    return compute
