"""The configuration of one BERT model: its sizes, its activation and its dropout."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import read_json_object, typed, typed_entries
from keras_bert_impl.options import bounded

ACTIVATIONS = ("gelu_tanh", "gelu_erf", "relu", "tanh", "linear")

# "gelu" is the tanh form in google's code and the erf form in Hugging Face's: the same word, other
# numbers. So a name is only understood together with the program that wrote it.
_OWN_NAMES = {name: name for name in ACTIVATIONS}
_GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", **_OWN_NAMES, "": "linear"}
_HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    **_OWN_NAMES,
}
_TO_GOOGLE = {"gelu_tanh": "gelu"}
_TO_HUGGING_FACE = {"gelu_tanh": "gelu_new", "gelu_erf": "gelu"}


# Far above every model.
_LARGEST_SIZE, _MOST_BLOCKS = 2**30, 10_000
_MOST_WEIGHTS = 2**38  # a terabyte of them

OWN_MODEL_TYPE = "keras_bert_impl"
"""The model_type of what `transformers` would open as a BERT and compute otherwise, unnoticed."""

BILSTM_ENTRY = "encoder_bilstm"
"""True in the configuration of a model with a BiLSTM on its encoder; see `models.head_settings`."""

POOLING_ENTRY = "classifier_pooling"
"""What classes are read from where it is not the pooler's vector; see `models.head_settings`."""

MASKED_LM_ENTRY = "masked_lm_head"
"""Fields of a configuration that the head of masked words has otherwise than its encoder."""


class _MaskedLmHead(TypedDict, total=False):
    hidden_act: str
    layer_norm_eps: float


class _CrossEncoder(TypedDict, total=False):
    activation_fn: str | None


class _Understood(TypedDict, total=False):
    """The types of further entries of a file that heads and tasks read."""

    classifier_pooling: str | None
    masked_lm_head: _MaskedLmHead
    num_labels: int | None
    pad_token_id: int | None
    problem_type: str | None
    sbert_ce_default_activation_function: str | None
    sentence_transformers: _CrossEncoder | None
    task_specific_params: dict[str, Any] | None


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The sizes and settings of one BERT encoder.

    Attributes:
        vocab_size: the number of tokens of the vocabulary.
        hidden_size: the width H of the encoder; a multiple of `num_attention_heads`.
        num_hidden_layers: the number of blocks.
        num_attention_heads: the number of attention heads.
        intermediate_size: the width of the feed-forward layer.
        hidden_act: one of `ACTIVATIONS`; the tanh and the erf form of GELU have names of their own.
        hidden_dropout_prob: the share of hidden numbers dropped in training.
        attention_probs_dropout_prob: the share of attention probabilities dropped in training.
        max_position_embeddings: the longest sequence, in tokens.
        type_vocab_size: the number of segment types.
        initializer_range: the standard deviation of the truncated normal that new weights get.
        layer_norm_eps: what is added to a variance before its root is taken.
        causal: a token attends only to itself and to earlier tokens (the paper's left-to-right
            ablation).
        anticausal: a token attends only to itself and to later tokens; it excludes `causal`, whose
            mirror it is. `transformers` has no such model: the `config.json` of one has a
            model_type that `transformers` does not know.
        extra: further entries of a configuration file; kept and written back.
        origin: the file that it was read from, for messages.

    Raises:
        UserError: a value that no model can have.

    Example:
        >>> BertConfig(vocab_size=100, hidden_size=64, num_attention_heads=4).intermediate_size
        3072
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_tanh"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    causal: bool = False
    anticausal: bool = False
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    origin: str = dataclasses.field(default="model configuration", compare=False, repr=False)

    def __post_init__(self) -> None:
        # A copy and a view of it: the caller's dict may change, a frozen configuration may not.
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))
        values = {name: getattr(self, name) for name in _BOUNDS}
        typed_entries(values, _BOUNDS, self.origin, "correct it")
        if self.causal and self.anticausal:
            raise UserError(
                f"{self.origin}: causal and anticausal are both true, which leaves a token "
                "itself alone to attend to; set one of them."
            )
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"{self.origin}: hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}; change one of them."
            )
        if self._weights() > _MOST_WEIGHTS:
            raise UserError(
                f"{self.origin}: its sizes make {self._weights():.1e} weights, more than any "
                "machine holds; lower hidden_size, intermediate_size or num_hidden_layers."
            )

    def _weights(self) -> int:
        """The numbers of the embeddings' tables and the blocks' matrices."""
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        block = 4 * self.hidden_size + 2 * self.intermediate_size
        return self.hidden_size * (rows + self.num_hidden_layers * block)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles by plain values: `extra` is a view, which can be neither."""
        return type(self).from_dict, (self.to_dict(),)

    @classmethod
    def from_google_file(cls, path: str | os.PathLike[str]) -> "BertConfig":
        """Reads google's `bert_config.json`, where "gelu" means the tanh form.

        A file with a "model_type" was written by Hugging Face's code and is read as theirs.

        Raises:
            UserError: no such file, not JSON, or a value that no model can have.
        """
        values = read_json_object(path)
        read = cls.from_hugging_face if "model_type" in values else cls.from_google
        return read(values, str(path))

    @classmethod
    def from_google(cls, values: Mapping[str, Any], origin: str = "bert_config") -> "BertConfig":
        """Understands the content of google's `bert_config.json`.

        Example:
            >>> BertConfig.from_google({"vocab_size": 9, "hidden_act": "gelu"}).hidden_act
            'gelu_tanh'
        """
        return cls._from_mapping(values, _GOOGLE_ACTIVATIONS, origin)

    @classmethod
    def from_hugging_face(
        cls, values: Mapping[str, Any], origin: str = "config.json"
    ) -> "BertConfig":
        """Understands Hugging Face's `config.json`, where "gelu" means the erf form.

        Example:
            >>> BertConfig.from_hugging_face({"vocab_size": 9, "hidden_act": "gelu"}).hidden_act
            'gelu_erf'
        """
        for name, (usual, *others) in _COMPUTED_HERE.items():
            given = values.get(name, usual)
            if given not in (usual, *others):
                wanted = f"where it is {shown(usual)}"
                raise UserError(f"{origin}: {name} is {shown(given)}; name a model {wanted}.")
        values = dict(values)
        # `transformers` calls a BERT with left-to-right attention a decoder.
        typed_entries(values, {"is_decoder": bool | None}, origin, "correct it")
        values["causal"] = values.pop("is_decoder", None) or False
        if "model_type" in values and values.get("vocab_size") is None:
            values["vocab_size"] = VOCABULARY_SIZES["uncased"]  # as transformers understands it
        return cls._from_mapping(values, _HUGGING_FACE_ACTIVATIONS, origin)

    def check_length(self, max_seq_length: int, at_least: int = 1) -> None:
        """Refuses sequences that are longer than the model's positions, or too short for text."""
        if max_seq_length > self.max_position_embeddings:
            raise UserError(
                f"`max_seq_length={max_seq_length}` is more than the "
                f"{self.max_position_embeddings} positions of the model "
                "(max_position_embeddings); lower it or take another model."
            )
        if max_seq_length < at_least:
            raise UserError(
                f"`max_seq_length={max_seq_length}` leaves no room for text; give {at_least} or "
                "more."
            )

    def check_segments(self, segment_ids: Iterable[Any]) -> None:
        """Refuses arrays of pairs where the model has no vector for the second text."""
        if self.type_vocab_size < 2 and any(one.any() for one in segment_ids):
            fault = "type_vocab_size is 1: the model reads single texts"
            raise UserError(f"{self.origin}: {fault}; give no pairs, or name another model.")

    def to_google(self) -> dict[str, Any]:
        """The content of a `bert_config.json`; unknown keys that were read are kept."""
        values = self._known(_TO_GOOGLE)
        # google's code has none of these: they are written only where they differ from its own.
        if values.pop("layer_norm_eps") != 1e-12:
            values["layer_norm_eps"] = self.layer_norm_eps
        for name in ("causal", "anticausal"):
            if values.pop(name):
                values[name] = True
        # `self` as the default of what has none: it equals no value.
        kept = {
            name: value
            for name, value in self.extra.items()
            if name not in _HUGGING_FACE_ONLY and _HUGGING_FACE_DEFAULTS.get(name, self) != value
        }
        return dict(sorted({**kept, **values}.items()))

    def unknown_to_google(self) -> list[str]:
        """The parts of the model that google's programs would leave out, though its weights fit.

        Example:
            >>> BertConfig(vocab_size=9, causal=True).unknown_to_google()
            ['attention in one direction (causal)']
        """
        directions = [name for name in ("causal", "anticausal") if getattr(self, name)]
        found = [f"attention in one direction ({name})" for name in directions]
        own = {
            BILSTM_ENTRY: "the BiLSTM on the encoder",
            MASKED_LM_ENTRY: "the activation and the epsilon of the head of masked words",
            POOLING_ENTRY: "the pooling of its classifier",
        }
        given = {entry: self.extra.get(entry) for entry in own}
        return [*found, *(own[entry] for entry, one in given.items() if one and one != "pooler")]

    def to_hugging_face(self) -> dict[str, Any]:
        """The content of a `config.json`; unknown keys that were read are kept."""
        values = self._known(_TO_HUGGING_FACE)
        values["is_decoder"] = values.pop("causal")
        if not values.pop("anticausal"):
            values["model_type"] = "bert"
        else:
            values |= {"model_type": OWN_MODEL_TYPE, "anticausal": True}
        others = self.extra.get(POOLING_ENTRY, "pooler") != "pooler"
        pools_anew = others and architecture_of(self) in _POOLED
        if self.extra.get(BILSTM_ENTRY) or self.extra.get(MASKED_LM_ENTRY) or pools_anew:
            values["model_type"] = OWN_MODEL_TYPE
        return dict(sorted({**_HUGGING_FACE_DEFAULTS, **self.extra, **values}.items()))

    def to_dict(self) -> dict[str, Any]:
        """All fields under their own names, as plain values (for `get_config`)."""
        return {**self._known({}), "extra": dict(self.extra)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "BertConfig":
        """The inverse of `to_dict`.

        Example:
            >>> config = BertConfig(vocab_size=100)
            >>> BertConfig.from_dict(config.to_dict()) == config
            True
        """
        return cls(**values)

    def replace(self, **changes: Any) -> "BertConfig":
        """A copy with some values changed."""
        return dataclasses.replace(self, **changes)

    def of_masked_lm(self) -> "BertConfig":
        """The configuration of the head of masked words, which other libraries may compute anew."""
        known = _MaskedLmHead.__annotations__
        given = self.extra.get(MASKED_LM_ENTRY, {})
        return self.replace(**{name: given[name] for name in known if name in given})

    @classmethod
    def _from_mapping(
        cls, values: Mapping[str, Any], activations: Mapping[str, str], origin: str
    ) -> "BertConfig":
        # `transformers` may write null for a value that its class has a default for.
        known = {name: values[name] for name in _FIELDS if values.get(name) is not None}
        extra = {name: value for name, value in values.items() if name not in _FIELDS}
        if "vocab_size" not in known:
            raise UserError(f"{origin}: has no vocab_size; is it a BERT configuration?")
        if "hidden_act" in known:
            act = known["hidden_act"]
            if not isinstance(act, str) or act not in activations:
                raise UserError(
                    f"{origin}: hidden_act is {shown(act)}; known are "
                    f"{', '.join(filter(None, activations))}."
                )
            known["hidden_act"] = activations[act]
        else:
            known["hidden_act"] = activations["gelu"]
        typed(extra, _Understood, origin)
        return cls(**known, extra=extra, origin=origin)

    def _known(self, activations: Mapping[str, str]) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _FIELDS}
        values["hidden_act"] = activations.get(self.hidden_act, self.hidden_act)
        return values


_BESIDE = ("extra", "origin")
_WHOLE_NUMBERS = tuple(f.name for f in dataclasses.fields(BertConfig) if f.type is int)
_BOUNDS = {
    **dict.fromkeys(_WHOLE_NUMBERS, bounded(int, at_least=1, at_most=_LARGEST_SIZE)),
    "num_hidden_layers": bounded(int, at_least=1, at_most=_MOST_BLOCKS),
    "hidden_act": bounded(str, choices=ACTIVATIONS),
    "hidden_dropout_prob": bounded(float, at_least=0, at_most=0.999),
    "attention_probs_dropout_prob": bounded(float, at_least=0, at_most=0.999),
    "initializer_range": bounded(float, at_least=0, at_most=10),
    "layer_norm_eps": bounded(float, at_least=0, at_most=1),
    "causal": bool,
    "anticausal": bool,
}
_FIELDS = tuple(f.name for f in dataclasses.fields(BertConfig) if f.name not in _BESIDE)
_POOLED = ("BertForSequenceClassification", "BertForMultipleChoice")
_COMPUTED_HERE = {  # what decides how `transformers` computes, the usual value first
    "model_type": ("bert", OWN_MODEL_TYPE),
    "position_embedding_type": ("absolute", None),
    "add_cross_attention": (False, None),  # of a decoder that attends to another model's output
}
_HUGGING_FACE_DEFAULTS = {
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "use_cache": True,
}
# What says nothing in a file of google's form; heads and labels stay, so that they come back.
_HUGGING_FACE_ONLY = ("dtype", "gradient_checkpointing", "model_type", "torch_dtype",
                      "transformers_version")  # fmt: skip

# (blocks, width, heads) of the published sizes; the feed-forward layer is four times the width.
_NAMED_SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
MODEL_SIZES = tuple(_NAMED_SIZES)
VOCABULARY_SIZES = {"uncased": 30522, "cased": 28996, "multilingual": 119547}


def named_config(name: str, vocab_size: int | str = "uncased") -> BertConfig:
    """The configuration of a published size.

    Args:
        name: tiny, mini, small, medium, base or large.
        vocab_size: the number of tokens, or whose vocabulary: uncased, cased or multilingual.

    Raises:
        UserError: there is no such size or vocabulary.

    Example:
        >>> named_config("tiny", 1000).hidden_size
        128
        >>> named_config("base", "cased").vocab_size
        28996
    """
    if name not in _NAMED_SIZES:
        raise UserError(f"model size {name!r}: no such size; choose {', '.join(_NAMED_SIZES)}.")
    if isinstance(vocab_size, str):
        if vocab_size not in VOCABULARY_SIZES:
            raise UserError(
                f"vocabulary {vocab_size!r}: unknown; give a number or one of "
                f"{', '.join(VOCABULARY_SIZES)}."
            )
        vocab_size = VOCABULARY_SIZES[vocab_size]
    blocks, width, heads = _NAMED_SIZES[name]
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )


def architecture_of(config: BertConfig) -> str:
    """The model that a configuration names first; "" if it names none.

    Example:
        >>> architecture_of(BertConfig(vocab_size=9, extra={"architectures": ["BertModel"]}))
        'BertModel'
    """
    names = config.extra.get("architectures")
    if isinstance(names, list) and names:
        return str(names[0])
    return names if isinstance(names, str) else ""
