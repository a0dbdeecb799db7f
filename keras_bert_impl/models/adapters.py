"""Adapters: low-rank changes of an encoder's matrices, trained while the encoder stays (LoRA)."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.checkpoints.names import encoder_names
from keras_bert_impl.compat import share, sublayers
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import Options, option

TARGETS = ("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense")
_ALL = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdapterConfig(Options):
    """Which matrices get an adapter, and of what rank."""

    lora_rank: int = option(
        0,
        "Train adapters of this rank (LoRA) and the head, the encoder stays; 0 trains everything. "
        "adapter/ has PEFT's form, model/ is the whole model. Take a rate of 2e-4 to 1e-3.",
        at_least=0,
    )
    lora_alpha: float | None = option(
        None, "Adapters count alpha / rank; by default alpha is twice the rank.", more_than=0
    )
    lora_targets: tuple[str, ...] = option(
        ("query", "value"),
        f"The matrices with adapters, by the ends of their names: {', '.join(TARGETS)}; or {_ALL}.",
    )
    use_rslora: bool = option(False, "Adapters count alpha / sqrt(rank) instead.")

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [one for one in self.lora_targets if one not in (*TARGETS, _ALL)]
        if unknown or not self.lora_targets:
            named, known = shown(unknown[0]) if unknown else "nothing", ", ".join(TARGETS)
            raise UserError(f"`lora_targets` names {named}; choose among {known} and {_ALL}.")
        fields = dataclasses.fields(self)
        given = [one.name for one in fields if getattr(self, one.name) != one.default]
        if given and not self.lora_rank:
            raise UserError(f"`{given[0]}` needs `lora_rank`, the rank of the adapters; give it.")

    @property
    def alpha(self) -> float:
        """The given alpha, or twice the rank."""
        return self.lora_alpha or 2 * self.lora_rank

    @property
    def targets(self) -> tuple[str, ...]:
        return TARGETS if _ALL in self.lora_targets else self.lora_targets


def scale_of(alpha: float, rank: int, use_rslora: bool) -> float:
    """What the product of an adapter's two matrices is multiplied with."""
    return alpha / (rank**0.5 if use_rslora else rank)


def ends_with(module: str, end: str) -> bool:
    """Whether a module's dotted name ends with whole words.

    Example:
        >>> ends_with("layer.0.attention.self.query", "query"), ends_with("my_query", "query")
        (True, False)
    """
    return f".{module}".endswith(f".{end}")


def module_names(blocks: int) -> dict[str, str]:
    """Hugging Face's names of an encoder's dense layers, pooler included, by ours.

    Example:
        >>> module_names(1)["layer_0/output"]
        'bert.encoder.layer.0.output.dense'
    """
    return {
        row.ours.removesuffix("/kernel"): row.hugging_face.removesuffix(".weight")
        for row in encoder_names(blocks)
        if row.ours.endswith("/kernel")
    }


def add_adapters(model: Any, config: AdapterConfig) -> None:
    """Adds adapters to a model's encoder: at first they change nothing."""
    names = module_names(model.config.num_hidden_layers)
    scale = scale_of(config.alpha, config.lora_rank, config.use_rslora)
    for path, dense in _dense_layers(model):
        if any(ends_with(names[path], end) for end in config.targets):
            dense.add_adapter(config.lora_rank, scale)


def freeze_loaded(model: Any, loaded: Collection[str]) -> None:
    """Freezes the encoder's weights that a checkpoint gave: adapters and what is new learn."""
    for weight in model.encoder.weights:
        unread = weight.path.startswith("pooler/") and not model.reads_pooler
        weight.trainable = not unread and weight.path not in loaded


class Adapter(NamedTuple):
    """An adapter's numbers: it adds `scale * a @ b`, of [in, rank] and [rank, out]."""

    a: np.ndarray
    b: np.ndarray
    scale: float

    @property
    def change(self) -> np.ndarray:
        """What is added to the kernel, float32 [in, out]."""
        change: np.ndarray = np.float32(self.scale) * (self.a @ self.b)
        return change


def adapters_of(model: Any) -> dict[str, Adapter]:
    """The adapters of a model by the paths of their layers; {} where it has none."""
    return {
        path: Adapter(np.asarray(one.lora_a), np.asarray(one.lora_b), one.adapter_scale)
        for path, one in _dense_layers(model)
        if one.adapter_scale is not None
    }


def _dense_layers(model: Any) -> Iterator[tuple[str, Any]]:
    """The dense layers of all blocks in a model or layer, each with its path."""
    from keras_bert_impl.layers.encoder_block import EncoderBlock  # options are read without Keras

    if isinstance(model, EncoderBlock):
        inner = (model.attention_output, model.intermediate, model.output_dense)
        for dense in (*model.attention.projections, *inner):
            yield dense.kernel.path.removesuffix("/kernel"), dense
        return
    for child in sublayers(model):
        yield from _dense_layers(child)


class SharedEncoder:
    """The weights of a base model, which the models of its adapters compute with.

    An adapter's model has its two small matrices of each layer, and its head, for itself; all
    other numbers are in memory once, also as kernels hold them that cast them before they compute.
    """

    def __init__(self) -> None:
        self._weights: dict[str, Any] = {}
        self._lent: dict[int, Any] = {}  # held, so that no other object gets the number
        self._casts: dict[Any, Any] = {}

    def lend(self, model: Any) -> None:
        """Takes a base model, whose weights others compute with."""
        model.shared_encoder = self
        for weight in model.weights:
            self._weights[weight.path] = self._lent[id(weight)] = weight

    def join(self, model: Any, adapters: Mapping[str, Adapter], own: Collection[str]) -> None:
        """Makes the model of an adapter, which is merged, compute with the base's weights.

        `adapters` are by the paths of their layers; `own` weights the adapter has for itself.
        """
        if not self._weights:
            return  # it stays merged
        model.shared_encoder = self
        layers = dict(_dense_layers(model))
        # What gets no adapter, such as the pooler's matrix, stays merged.
        own = {*own, *(f"{path}/kernel" for path in adapters if path not in layers)}
        for weight in model.weights:
            if weight.path not in own and weight.path in self._weights:
                share(weight, self._weights[weight.path])
                self._lent[id(weight)] = weight
        for path, dense in layers.items():
            if one := adapters.get(path):
                dense.add_adapter(one.a.shape[1], one.scale)
                dense.lora_a.assign(one.a)
                dense.lora_b.assign(one.b)

    def kept(self, weight: Any, how: Any, make: Callable[[], Any]) -> Any:
        """What `make` makes of a weight; of one of the base's it is made once for each `how`."""
        if id(weight) not in self._lent:
            return make()
        if (weight.path, how) not in self._casts:
            self._casts[weight.path, how] = make()
        return self._casts[weight.path, how]
