"""The base of all models: their configuration and inputs, opening and writing of weights."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, Self

import keras
import numpy as np

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.restore import RestoreReport, restore
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    task_settings,
    with_task_settings,
)
from keras_bert_impl.compat import sublayers
from keras_bert_impl.config import BertConfig
from keras_bert_impl.cpu_kernels.xla_programs import safe_in_threads
from keras_bert_impl.errors import UserError, check_kind
from keras_bert_impl.files import StrPath
from keras_bert_impl.layers import kernels
from keras_bert_impl.models.adapters import SharedEncoder, adapters_of
from keras_bert_impl.models.head_settings import LabelUnits
from keras_bert_impl.models.inputs import complete_inputs
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.text_settings import REMEDY, TextSettings

SpecialTokens = Literal["split", "keep"]
_log = logging.getLogger(__name__)


class ReadsText(Protocol):
    """An object that knows how text becomes ids: a `Tokenizer` or a `BertPreprocessor`."""

    settings: TextSettings
    special_tokens: SpecialTokens

    long_text: str

    @property
    def max_seq_length(self) -> int | None:
        """The length that texts are packed to; None where each call says it."""


class ConfiguredModel(keras.Model):
    """A functional model that saves its configuration instead of its graph.

    It is called with a dict of its inputs; see `complete_inputs` for other names that are
    understood and for what may be left out.

    Args:
        inputs: symbolic inputs.
        outputs: symbolic outputs.
        config: the model's configuration; readable as `.config`.
        dtype: a Keras dtype policy or its name, e.g. "mixed_bfloat16"; the global one by default.
        trainable: False freezes the whole model.
        frozen: layers that are (not) frozen by their paths; see `frozen_layers`.

    Attributes:
        kernels: what the model's layers compute with; `layers.kernels.PLAIN` unless another set is
            assigned. Graphs that were traced before keep theirs. They suit a machine and not a
            model's file: a saved model starts with the plain ones again.
        label_units: the units that a regression learns in; None where its weights are plain.
        sentence: how a text becomes a vector; None where the model is of something else.
        shared_encoder: the weights that it shares with others; None where it has its own.
    """

    label_units: LabelUnits | None = None
    reads_pooler = True
    """Whether its outputs depend on the pooler; tags and spans are of tokens, and do not."""
    saves: tuple[str, ...] = ()
    """Further arguments that it is saved with, held by attributes of their names."""

    def __init__(
        self,
        *,
        inputs: Mapping[str, Any],
        outputs: Any,
        config: BertConfig,
        dtype: Any = None,
        trainable: bool = True,
        frozen: Mapping[str, bool] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        safe_in_threads()  # XLA reads its flags once: before Keras compiles a step of this model
        self.config = config
        # Keras asks the model for it, e.g. whether the loss must be scaled (mixed_float16).
        self.dtype_policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        self._names = tuple(inputs)
        self._text: TextSettings | None = None
        self.sentence: SentenceSettings | None = None
        self.shared_encoder: SharedEncoder | None = None
        self._why_no_text = "was not opened by from_pretrained"
        self.kernels: kernels.PlainKernels = kernels.PLAIN
        self.trainable = trainable
        freeze_layers(self, frozen or {})

    def __call__(
        self,
        inputs: Any,
        *args: Any,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Runs the model on a dict of inputs.

        Args:
            output_hidden_states: also give `hidden_states`: the embeddings' output and that of
                each block, [batch, length, hidden] each.
            output_attentions: also give `attentions`: of each block [batch, heads, from, to].
                Both are computed in a pass of their own, in which nothing is dropped.
        """
        # Before Keras compares names and shapes: its messages know nothing of the defaults.
        completed = self._complete(inputs)
        outputs = super().__call__(completed, *args, **kwargs)
        if output_hidden_states or output_attentions:
            from keras_bert_impl.models.inner_outputs import hidden_states, recorded_probabilities

            if any(isinstance(one, keras.KerasTensor) for one in completed.values()):
                fault = (
                    "output_hidden_states and output_attentions are of arrays, not of keras.Input"
                )
                raise UserError(f"{fault}; make a BertEncoder(config, return_all_layers=True).")
            if output_hidden_states:
                outputs = {**outputs, "hidden_states": hidden_states(self, completed)}
            if output_attentions:
                outputs = {**outputs, "attentions": recorded_probabilities(self, completed)}
        return outputs

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the model on a dict of inputs; on JAX, `fit` comes here directly."""
        with kernels.use_of_model(self.kernels):
            return super().call(self._complete(inputs), training=training, mask=mask)

    def _complete(self, inputs: Any) -> dict[str, Any]:
        return complete_inputs(inputs, self._names, self.config)

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: StrPath,
        *,
        bert_config_file: StrPath | None = None,
        vocab_file: StrPath | None = None,
        do_lower_case: bool | None = None,
        adapter: StrPath | None = None,
        **options: Any,
    ) -> Self:
        """Makes the model with trained weights.

        Args:
            path_or_name: a model directory (Hugging Face's form), google's TF1 checkpoint or the
                folder that it lies in, a run's folder or checkpoint, or a name on the Hugging Face
                hub such as "klue/bert-base"; see `checkpoints.model_source`.
            bert_config_file: the configuration, if there is none beside the weights.
            vocab_file: the vocabulary, if there is none beside the weights.
            do_lower_case: the casing, if no file says it.
            adapter: the folder of an adapter (LoRA, in PEFT's form), which is merged.
            **options: further arguments of the model, e.g. `dtype` or `num_labels`.

        Returns:
            The model. Weights that the checkpoint does not have start at random; a line of the log
            names them.
        """
        try:
            is_float = "float" in keras.dtype_policies.get(options.get("dtype")).compute_dtype
        except ValueError:
            is_float = False
        if not is_float:
            remedy = "give float32, mixed_bfloat16 or another of Keras' floats"
            raise UserError(f"dtype={options['dtype']!r} cannot be taken; {remedy}.")
        source = find_model(
            path_or_name,
            bert_config_file=bert_config_file,
            vocab_file=vocab_file,
            do_lower_case=do_lower_case,
            adapter=adapter,
            needs_text=False,  # a model for ids alone has no vocabulary
        )
        model = cls(**cls._arguments(source, options))
        model._warn_of_new_weights(model._restore(source))
        model._text = source.found_text
        model._why_no_text = f"was opened without one ({source.why_no_text.rstrip('.')})"
        return model

    @classmethod
    def _arguments(cls, source: ModelSource, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the model that a source and the caller's options make."""
        return {"config": source.config, **options}

    def _restore(self, source: ModelSource) -> RestoreReport:
        return restore(self, source.tensors())

    def _warn_of_new_weights(self, report: RestoreReport) -> None:
        paths = {variable.path for variable in self.weights} - set(report.loaded)
        if not self.reads_pooler:
            paths = {path for path in paths if not path.startswith("pooler/")}
        if paths:
            parts = ", ".join(sorted({path.split("/")[0] for path in paths}))
            _log.warning(
                f"{report.location} has no weights for these parts of {type(self).__name__}: "
                f"{parts}. They start at random: train them before you use their outputs."
            )

    def save_pretrained(
        self, folder: StrPath, tokenizer: ReadsText | TextSettings | None = None
    ) -> None:
        """Writes a model directory that this package, `transformers` and KerasHub open.

        Args:
            folder: where to; an older model directory of that name is replaced.
            tokenizer: what made the ids that the model was trained with; by default that of the
                checkpoint that `from_pretrained` opened.
        """
        text: Any = self._known_text() if tokenizer is None else tokenizer
        config = self.config
        if hasattr(text, "settings"):
            text, config = text.settings, _with_packing(config, text)
        check_kind(text, TextSettings, REMEDY)
        write_model_directory(folder, self, text, config, self.sentence)

    def quantize(self, mode: Any = None, **_: Any) -> None:
        """Refused: Keras would quantize none of the layers, and only warn."""
        fault = f"Keras has no way to quantize these layers ({mode})"
        raise UserError(
            f"{fault}; save the model, and use it with engine=openvino, precision=int8."
        )

    def plain_weights(self) -> dict[str, np.ndarray]:
        """The weights by their paths, as a model directory holds them: adapters are merged."""
        weights = {variable.path: np.asarray(variable) for variable in self.weights}
        for path, adapter in adapters_of(self).items():
            weights[f"{path}/kernel"] = weights[f"{path}/kernel"] + adapter.change
        return weights

    def _known_text(self) -> TextSettings:
        if self._text is None:
            raise UserError(
                f"a model directory holds the vocabulary too, and this model {self._why_no_text}; "
                "give the tokenizer: save_pretrained(folder, tokenizer)."
            )
        return self._text

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "frozen": frozen_layers(self),
            "dtype": self.dtype_policy.name,
            "config": self.config.to_dict(),
            **{name: getattr(self, name) for name in self.saves},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        del custom_objects  # every part of the model is registered with Keras
        return cls(**{**config, "config": BertConfig.from_dict(config["config"])})


def _with_packing(config: BertConfig, tokenizer: ReadsText) -> BertConfig:
    """Writes how texts were packed, so that the exported model packs them likewise."""
    known = task_settings(config)
    settings = {name: value for name, value in known.items() if name != "special_tokens"}
    if tokenizer.max_seq_length is not None:
        settings["max_seq_length"] = min(tokenizer.max_seq_length, config.max_position_embeddings)
    if tokenizer.special_tokens == "keep":
        settings["special_tokens"] = "keep"
    if tokenizer.long_text != long_texts_of(config).long_text:
        for name in long_texts_of(config).settings:
            settings.pop(name, None)
        settings |= LongTexts(long_text=tokenizer.long_text).settings
    return config if settings == known else with_task_settings(config, settings)


def set_kernels(layer: keras.Layer, chosen: kernels.PlainKernels) -> None:
    """Makes a model, or every one of our models inside another layer, compute with `chosen`."""
    if isinstance(layer, ConfiguredModel):
        layer.kernels = chosen
        return
    for child in sublayers(layer):
        set_kernels(child, chosen)


def frozen_layers(model: keras.Layer) -> dict[str, bool]:
    """Gives `trainable` by its path of every layer where it differs from the layer that holds it.

    Keras saves `trainable` with each layer that it saves. A `ConfiguredModel` saves its
    configuration in place of its layers, so it saves this along with it.

    Example:
        >>> model = keras.Sequential([keras.layers.Dense(1, name="first")])
        >>> model.layers[0].trainable = False
        >>> frozen_layers(model)
        {'first': False}
    """
    walked = _walk(model)
    return {path: x.trainable for path, x, parent in walked if x.trainable != parent.trainable}


def freeze_layers(model: keras.Layer, differences: Mapping[str, bool]) -> None:
    """Sets `trainable` as `frozen_layers` found it.

    Example:
        >>> model = keras.Sequential([keras.layers.Dense(1, name="first")])
        >>> freeze_layers(model, {"first": False})
        >>> model.layers[0].trainable
        False
    """
    layers = {path: layer for path, layer, _ in _walk(model)}
    # Setting a layer sets all layers in it: the outer ones come first.
    for path in sorted(differences, key=lambda path: path.count("/")):
        if path in layers:
            layers[path].trainable = differences[path]


def _walk(layer: keras.Layer, prefix: str = "") -> Iterator[tuple[str, keras.Layer, keras.Layer]]:
    """Every layer below one, with its path and the layer that holds it."""
    # By names and not by Keras' paths, which exist only for what was built.
    for child in sublayers(layer):
        path = f"{prefix}{child.name}"
        yield path, child, layer
        yield from _walk(child, f"{path}/")


def encoder_inputs() -> dict[str, keras.KerasTensor]:
    """Symbolic inputs, int32 [batch, length] each.

    `input_ids` holds the ids of the tokens, `input_mask` 1 for a token and 0 for padding,
    `segment_ids` 0 for the first segment and 1 for the second.

    Example:
        >>> sorted(encoder_inputs())
        ['input_ids', 'input_mask', 'segment_ids']
    """
    return {name: keras.Input(shape=(None,), dtype="int32", name=name) for name in ENCODER_INPUTS}
