"""Which vector stands for a whole input: the pooler's, the first token's, or the tokens' mean.

A configuration says it under `classifier_pooling`; one that says nothing means the pooler, as the
original and `transformers` do (which leaves the entry alone).
"""

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError

POOLER, CLS, MEAN = "pooler", "cls", "mean"
POOLINGS = (POOLER, CLS, MEAN)

_ENTRY = "classifier_pooling"


def pooling_of(config: BertConfig) -> str:
    """The pooling that a configuration says.

    Raises:
        UserError: it says one that does not exist.

    Example:
        >>> pooling_of(BertConfig(vocab_size=9))
        'pooler'
    """
    pooling = config.extra.get(_ENTRY, POOLER)
    if pooling not in POOLINGS:
        raise UserError(
            f"model configuration: {_ENTRY} is {pooling!r}; it must be one of "
            f"{', '.join(POOLINGS)}."
        )
    return str(pooling)


def with_pooling(config: BertConfig, pooling: str | None) -> BertConfig:
    """The configuration with another pooling; with None the one that it says.

    Raises:
        UserError: there is no such pooling.

    Example:
        >>> with_pooling(BertConfig(vocab_size=9), "mean").to_hugging_face()["classifier_pooling"]
        'mean'
    """
    if pooling is None:
        return config
    if pooling not in POOLINGS:
        raise UserError(f"`pooling={pooling}` is unknown; choose {', '.join(POOLINGS)}.")
    others = {name: value for name, value in config.extra.items() if name != _ENTRY}
    return config.replace(extra=others if pooling == POOLER else {**others, _ENTRY: pooling})
