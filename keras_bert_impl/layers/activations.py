"""Activations by the names of `keras_bert_impl.config.ACTIVATIONS`."""

from collections.abc import Callable
from typing import Any

from keras import ops


def _gelu_tanh(inputs: Any) -> Any:
    return ops.gelu(inputs, approximate=True)


def _gelu_erf(inputs: Any) -> Any:
    return ops.gelu(inputs, approximate=False)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "gelu_tanh": _gelu_tanh,
    "gelu_erf": _gelu_erf,
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda inputs: inputs,
}


def activate(inputs: Any, name: str) -> Any:
    """Applies an activation, computed in float32; shape and type stay.

    Args:
        inputs: floating-point tensor of any shape.
        name: one of `ACTIVATIONS`; "gelu_tanh" and "gelu_erf" differ by up to 5e-4.

    Example:
        >>> import numpy as np
        >>> np.array(activate(np.array([-1.0, 2.0], "float32"), "relu")).tolist()
        [0.0, 2.0]
    """
    inputs = ops.convert_to_tensor(inputs)
    return ops.cast(_FUNCTIONS[name](ops.cast(inputs, "float32")), inputs.dtype)
