"""The numbers of the dropout layers' own streams of draws.

Two dropout layers of one model never share a number; the numbers do not depend on the order in
which layers are made, so a model built in another process draws the same bits.
"""

EMBEDDINGS = 0
_BLOCKS = 1
_IN_BLOCK = 3
HEAD = 1_000_000


def attention_probabilities(block: int) -> int:
    """The stream of a block's attention probabilities.

    Example:
        >>> attention_probabilities(0), attention_output(0), feed_forward(0)
        (1, 2, 3)
        >>> attention_probabilities(1)
        4
    """
    return _BLOCKS + _IN_BLOCK * block


def attention_output(block: int) -> int:
    """The stream of a block's attention output."""
    return attention_probabilities(block) + 1


def feed_forward(block: int) -> int:
    """The stream of a block's feed-forward output."""
    return attention_probabilities(block) + 2
