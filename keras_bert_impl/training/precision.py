"""What layers compute in; weights are float32 in every precision."""

from keras_bert_impl.errors import UserError

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


def dtype_policy(precision: str) -> str:
    """Gives the Keras dtype policy of a precision, for a model's `dtype`.

    Raises:
        UserError: an unknown precision.

    Example:
        >>> dtype_policy("bfloat16")
        'mixed_bfloat16'
    """
    if precision not in _POLICIES:
        raise UserError(f"--precision={precision} is unknown; choose {' or '.join(_POLICIES)}.")
    return _POLICIES[precision]
