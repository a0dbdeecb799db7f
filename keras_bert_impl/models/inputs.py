"""The inputs that every model here takes."""

import keras


def encoder_inputs() -> dict[str, keras.KerasTensor]:
    """Symbolic inputs, int32 [batch, length] each.

    `input_ids` holds pieces, `input_mask` 1 for a piece and 0 for padding, `segment_ids` 0 for the
    first segment and 1 for the second.

    Example:
        >>> sorted(encoder_inputs())
        ['input_ids', 'input_mask', 'segment_ids']
    """
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: keras.Input(shape=(None,), dtype="int32", name=name) for name in names}
