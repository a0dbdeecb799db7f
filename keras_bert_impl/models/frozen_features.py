"""Which layers of a frozen encoder a head reads: the six combinations of BERT's paper, table 7.

A configuration says it under `frozen_features`; `transformers` leaves the entry alone.
"""

from dataclasses import dataclass

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError

FEATURES = (
    "embeddings",
    "second_to_last",
    "last",
    "weighted_last_four",
    "concat_last_four",
    "weighted_all",
)

_ENTRY = "frozen_features"


@dataclass(frozen=True)
class FrozenFeatures:
    """What a head over a frozen encoder is.

    Attributes:
        features: one of `FEATURES`.
        lstm_size: the width of each direction of the BiLSTM.

    Example:
        >>> FrozenFeatures("weighted_last_four").layers(12)
        (9, 10, 11, 12)
        >>> FrozenFeatures("embeddings").layers(12)
        (0,)
    """

    features: str
    lstm_size: int = 768

    def __post_init__(self) -> None:
        if self.features not in FEATURES:
            raise UserError(f"`features={self.features}` is unknown; choose {', '.join(FEATURES)}.")

    @property
    def mixes(self) -> bool:
        """Whether the layers become one by a learned weighted sum; else they stand side by side."""
        return self.features.startswith("weighted")

    def layers(self, blocks: int) -> tuple[int, ...]:
        """The layers that are read, upwards: 0 is the embeddings' output, n that of block n.

        "All" are all blocks, as in the paper, without the embeddings.

        Args:
            blocks: of the encoder.

        Raises:
            UserError: the encoder has fewer.
        """
        first = {
            "embeddings": 0,
            "second_to_last": blocks - 1,
            "last": blocks,
            "weighted_all": 1,
        }.get(self.features, blocks - 3)
        if first < (0 if self.features == "embeddings" else 1):
            raise UserError(
                f"`features={self.features}`: the model has {blocks} blocks only; choose other "
                "features, or a larger model."
            )
        single = self.features in ("embeddings", "second_to_last", "last")
        return (first,) if single else tuple(range(first, blocks + 1))


def frozen_features(config: BertConfig) -> FrozenFeatures | None:
    """What a configuration says; None of a model whose encoder is fine-tuned.

    Raises:
        UserError: it says something that does not exist.
    """
    entry = config.extra.get(_ENTRY)
    if entry is None:
        return None
    try:
        return FrozenFeatures(str(entry["features"]), int(entry["lstm_size"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"model configuration: {_ENTRY} is {entry!r}; it must have features and lstm_size."
        ) from error


def with_frozen_features(config: BertConfig, given: FrozenFeatures | None) -> BertConfig:
    """The configuration with other features; None is a model whose encoder is fine-tuned.

    Example:
        >>> config = with_frozen_features(BertConfig(vocab_size=9), FrozenFeatures("last", 128))
        >>> frozen_features(config)
        FrozenFeatures(features='last', lstm_size=128)
        >>> frozen_features(with_frozen_features(config, None)) is None
        True
    """
    extra = {name: value for name, value in config.extra.items() if name != _ENTRY}
    if given is not None:
        extra[_ENTRY] = {"features": given.features, "lstm_size": given.lstm_size}
    return config.replace(extra=extra)
