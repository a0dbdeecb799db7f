"""How many positions a batch is computed with: not many more than its longest row has tokens."""

_SHAPES = 8  # so many lengths at most: each new one is traced (and with XLA compiled) once


def padded_length(longest: int, max_seq_length: int) -> int:
    """Rounds the tokens of a batch's longest row up to one of at most eight lengths.

    Padding takes no part in the attention, so every token's output stays what it was (but for
    rounding, and the draws of dropout); the time falls with the length, most of all for short
    sentences with a generous maximum. Lengths are multiples of an eighth of the maximum (of 8
    positions at least), so that there are few shapes.

    Args:
        longest: the tokens of the batch's longest row.
        max_seq_length: the most positions of a row.

    Example:
        >>> [padded_length(longest, 128) for longest in (0, 1, 16, 17, 127, 128)]
        [16, 16, 16, 32, 128, 128]
    """
    grain = max(8, -(-max_seq_length // _SHAPES))
    return min(max_seq_length, -(-max(longest, 1) // grain) * grain)
