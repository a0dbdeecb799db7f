"""Which vector stands for a whole input: the pooler's, the first or last token's, or the mean.

With left-to-right attention the first token sees no other: there the last one stands for the input.
A configuration says it under `classifier_pooling`; one that says nothing means the pooler, as the
original and `transformers` do (which leaves the entry alone). It also says whether a BiLSTM stands
between the encoder and the head.
"""

from keras_bert_impl.config import BILSTM_ENTRY, BertConfig
from keras_bert_impl.errors import UserError

POOLER, CLS, MEAN, LAST = "pooler", "cls", "mean", "last"
POOLINGS = (POOLER, CLS, MEAN)
HEAD_POOLINGS = (*POOLINGS, LAST)
"""Of these only heads know the last."""

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
    if pooling not in HEAD_POOLINGS:
        raise UserError(
            f"model configuration: {_ENTRY} is {pooling!r}; it must be one of "
            f"{', '.join(HEAD_POOLINGS)}."
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
    if pooling not in HEAD_POOLINGS:
        raise UserError(f"`pooling={pooling}` is unknown; choose {', '.join(HEAD_POOLINGS)}.")
    others = {name: value for name, value in config.extra.items() if name != _ENTRY}
    return config.replace(extra=others if pooling == POOLER else {**others, _ENTRY: pooling})


def trained_pooling(config: BertConfig) -> str | None:
    """The pooling that a new head is trained with where none is asked for.

    Returns:
        The last token's where it alone sees the whole input and the configuration says nothing;
        else None, for what the configuration says.

    Example:
        >>> trained_pooling(BertConfig(vocab_size=9, causal=True))
        'last'
    """
    return LAST if config.causal and _ENTRY not in config.extra else None


def has_bilstm(config: BertConfig) -> bool:
    """Whether a BiLSTM stands between encoder and head.

    Example:
        >>> has_bilstm(BertConfig(vocab_size=9))
        False
    """
    return config.extra.get(BILSTM_ENTRY) is True


def with_bilstm(config: BertConfig, wanted: bool) -> BertConfig:
    """The configuration with a BiLSTM; unchanged where none is wanted.

    `transformers` has no such model: its `config.json` has a model_type that it does not know.

    Example:
        >>> with_bilstm(BertConfig(vocab_size=9), True).to_hugging_face()["model_type"]
        'keras_bert_impl'
    """
    if not wanted:
        return config
    return config.replace(extra={**config.extra, BILSTM_ENTRY: True})
