"""The one way from a model, in whatever form, to an object that answers texts."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keras_bert_impl.checkpoints.formats.peft_adapter import AdapterSource
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.restore import names_of, refuse_untrained, restore
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings, read_dense
from keras_bert_impl.checkpoints.task_settings import served_length, task_settings
from keras_bert_impl.engines.config import FLOAT32, INT8, OPENVINO, TENSORFLOW
from keras_bert_impl.engines.engine import Engine, Features
from keras_bert_impl.engines.kept_graph import UnbuiltModel
from keras_bert_impl.engines.open_engine import open_engine
from keras_bert_impl.engines.openvino_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import SharedEncoder
from keras_bert_impl.serving.answerer import (
    REFUSE,
    WINDOWS,
    Answerer,
    collate,
    default_first,
    fits,
    instances_of,
)
from keras_bert_impl.serving.embedder import sentence_settings_of, unbuilt_embedder
from keras_bert_impl.serving.exported import ExportedModel, find_exported, located
from keras_bert_impl.serving.forms import (
    EngineAnswerer,
    Form,
    KnownModel,
    MaskedWordsForm,
    NextSentenceForm,
    VectorForm,
)
from keras_bert_impl.serving.opened_model import build_model, heads_of, lacks
from keras_bert_impl.serving.reranking import activation_of
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.config import dtype_policy
from pipelines.answering.config import AnsweringConfig
from pipelines.tasks.register import forms_of_task, task_of, unbuilt_task_model

_LABELLED = ("label", "labels", "entities")
_WITH_OFFSETS = ("answer", "entities")
Texts = Callable[[], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class OpenAnsweringModel:
    """An open model with all that it answers, and how it was opened; see `AnsweringModel`."""

    answerers: Mapping[str, Answerer]
    description: Mapping[str, Any]
    text: TextSettings
    close: Callable[[], None]
    config: AnsweringConfig
    columns: Sequence[str] = ()  # of the files that it was trained on: of its text, or of both


OpenEngine = Callable[[Callable[[], list[Features]]], Engine]
"""Opens an engine, given inputs of some rows, on which the scales of int8 are found."""

_Opening = tuple[AnsweringConfig, Sequence[Form], OpenEngine]
"""How a model is opened, its engine chosen; what it is asked; and what opens the engine."""

_LACKS = {
    MaskedWordsForm.kind: "has no masked-LM head; name a pre-trained model, such as the model/ "
    "folder of a pre-training run.",
    "answer": "holds no model for questions; name the model/ folder of a run of run_squad.",
}
"""What is said of a model without the kind of answers that is asked for."""


def open_answering_model(
    config: AnsweringConfig,
    texts: Texts = tuple,
    kind: str | None = None,
    shared: SharedEncoder | None = None,
) -> OpenAnsweringModel:
    """Opens a model with all that it answers; one without answers of a `kind` is refused.

    `texts` gives texts, or instances, like those to come; it is called where the scales of int8 are
    not kept next to the model. A base and its adapters have `shared` what they share in TensorFlow.
    """
    known: KnownModel
    folder, told = located(config.model), config.description()
    if exported := find_exported(folder, config.engine, **told):
        known, opening = exported, _of_export(config, exported)
    else:
        known = source = find_model(folder, **told)
        opening = _of_source(config, source, shared)
    config, forms, open_it = opening
    by_name = {form.signature: form for form in forms}
    forms = [by_name[name] for name in default_first(by_name)]
    for form in forms if config.long_text == WINDOWS else ():
        if not form.has_windows:
            raise UserError(
                f"{config.model}: its task ({form.kind.replace('_', ' ')}) has no windows; take "
                "`long_text=truncate` or `long_text=refuse`."
            )
    if kind and all(form.kind != kind for form in forms):
        raise UserError(f"{config.model}: {_LACKS[kind]}")
    engine = open_it(functools.partial(_calibration, forms, texts))
    answer = functools.partial(
        EngineAnswerer,
        engine=engine,
        config=known.config,
        deterministic=config.deterministic,
        origin=config.model,
        refuses_long=config.long_text == REFUSE,
    )
    answerers = {form.signature: answer(form) for form in forms}
    about = _description(config, known, forms[0])
    kept = task_settings(known.config, {"text_column": str | None})
    columns = [kept[one] for one in ("text_column", "text_pair_column") if kept.get(one)]
    return OpenAnsweringModel(answerers, about, known.text, engine.close, config, columns)


def no_texts() -> Iterable[Any]:
    """Refuses to find the scales of int8 on a few texts: they are kept for all that come."""
    raise UserError(
        "`precision=int8` finds its scales on the first texts of a file and keeps them: "
        "answer an `input_file` with some hundred by `keras-bert predict`, no stream, first."
    )


def _of_export(config: AnsweringConfig, exported: ExportedModel) -> _Opening:
    config = config if exported.static else dataclasses.replace(config, engine=OPENVINO)
    precision, same = config.precision, config.deterministic
    finds_scales = precision == INT8 and not exported.static
    engine = exported.open(FLOAT32 if finds_scales else precision, deterministic=same)
    forms = _forms_of_export(config, exported, engine.output_sizes)
    # Its scales are found on rows of the first form.
    return config, forms, lambda rows: exported.open(INT8, rows, same) if finds_scales else engine


def _forms_of_export(
    config: AnsweringConfig, exported: ExportedModel, outputs: Mapping[str, int | None]
) -> Sequence[Form]:
    folder = exported.checkpoint
    length = config.max_seq_length or exported.max_seq_length
    if config.vectors and not exported.gives_vectors and "sequence_output" not in outputs:
        raise UserError(
            f"{folder}: gives no vectors; leave out `vectors`, or name the model directory."
        )
    if exported.gives_vectors:
        any_size = config.truncate_anyway
        return [VectorForm(exported, exported.sentence, length, any_size=any_size)]
    if "masked_lm_logits" in outputs:
        return _pretrained(config, exported, "next_sentence_logits" in outputs)
    if "sequence_output" in outputs:
        return [VectorForm(exported, SentenceSettings(), length, of_tokens=True)]
    forms, labels = forms_of_task(exported, config.max_seq_length), len(exported.labels)
    if not forms or not set(forms[0].model_outputs) <= set(outputs):
        raise UserError(f"{folder}: does not say what it answers; export it again.")
    if labels and labels != (count := outputs.get("logits")):
        raise UserError(
            f"{folder}: names {labels} labels, its graph gives {count}; export it again."
        )
    return forms


def _calibration(forms: Sequence[Form], texts: Texts) -> list[Features]:
    """The inputs of some texts, a row each, of the form that is asked with such."""
    some = evenly_spread(texts(), CALIBRATION_ROWS)
    form = next((form for form in forms if all(fits(form, one) for one in some)), forms[0])
    rows = form.prepare(instances_of(form, some)).rows if some else ()
    return [collate([row]) for row in evenly_spread(rows, CALIBRATION_ROWS)]


def _description(config: AnsweringConfig, known: KnownModel, form: Form) -> dict[str, Any]:
    bert, exported = known.config, known if isinstance(known, ExportedModel) else None
    sizes = {
        "layers": bert.num_hidden_layers,
        "hidden_size": bert.hidden_size,
        "attention_heads": bert.num_attention_heads,
    }
    about: dict[str, Any] = {
        "kind": form.kind,
        **({} if exported and exported.static else sizes),
        "vocabulary_size": len(known.text.vocabulary),
        "lower_case": known.text.do_lower_case,
        "max_seq_length": form.max_seq_length,
        "long_text": WINDOWS if form.has_windows else config.long_text,
        "engine": exported.engine if exported else config.engine,
        "precision": config.precision,
    }
    if isinstance(form, VectorForm):
        about["prompts"] = list(form.sentence.prompts)
        about["dimensions"] = list(form.sentence.dimensions)
    if form.kind in _WITH_OFFSETS:
        about["offsets"] = "characters (code points); those called utf16 count as JavaScript does"
    if form.most_answers:
        about["most_answers"] = form.most_answers
    if form.kind == "number":
        about["activation"] = activation_of(bert)
        if units := task_settings(bert, {"label_units": tuple[float, float]}).get("label_units"):
            mean, deviation = units
            about["range"] = [mean - 2 * deviation, mean + 2 * deviation]  # of most it learned from
    return about | ({"labels": list(known.labels)} if form.kind in _LABELLED else {})


def _of_source(
    config: AnsweringConfig, source: ModelSource, shared: SharedEncoder | None
) -> _Opening:
    """Of a model whose weights are here: in a directory, a TF1 checkpoint, a run."""
    engine, precision = config.engine or TENSORFLOW, config.precision
    config = dataclasses.replace(config, engine=engine)  # which checks that they fit
    policy = dtype_policy(precision if engine == TENSORFLOW else FLOAT32)
    forms, unbuilt = _forms_and_model(config, source, policy)
    if shared is not None and engine == TENSORFLOW:
        build = functools.partial(_build_shared, unbuilt.build, source, shared)
        unbuilt = dataclasses.replace(unbuilt, build=build)

    def open_it(rows: Callable[[], list[Features]]) -> Engine:
        return open_engine(
            unbuilt, engine, precision, source.folder, rows, deterministic=config.deterministic
        )

    return config, forms, open_it


def _forms_and_model(
    config: AnsweringConfig, source: ModelSource, policy: str
) -> tuple[Sequence[Form], UnbuiltModel]:
    if config.vectors:
        return _vectors_of(config, source, policy)
    if (task := task_of(source.config)) is not None:
        forms = forms_of_task(source, config.max_seq_length)
        return forms, unbuilt_task_model(source, task, policy)
    if not (heads := heads_of(source)):
        return _vectors_of(config, source, policy)
    build = functools.partial(_build, source, policy)
    if "classifier" in heads:
        forms = forms_of_task(source, config.max_seq_length)
        return forms, UnbuiltModel(build, source, "BertClassifier")
    follows = not (lacks(source, "pooler") or lacks(source, "next_sentence"))
    return _pretrained(config, source, follows), UnbuiltModel(build, source, "BertPretrainer")


def _vectors_of(
    config: AnsweringConfig, source: ModelSource, policy: str
) -> tuple[Sequence[Form], UnbuiltModel]:
    sentence, positions = sentence_settings_of(source), source.config.max_position_embeddings
    # As `embed` reads it, whatever the length of its task was.
    length = config.max_seq_length or sentence.max_seq_length or positions
    form = VectorForm(source, sentence, length, any_size=config.truncate_anyway)
    return [form], unbuilt_embedder(source, sentence, policy)


def _build(source: ModelSource, policy: str) -> Any:
    model = build_model(source, policy)
    refuse_untrained(model, restore(model, source.tensors()))
    return model


def _build_shared(build: Callable[[], Any], source: ModelSource, shared: SharedEncoder) -> Any:
    model, tensors = build(), source.tensors()
    if isinstance(tensors, AdapterSource):
        has_dense = read_dense(source.folder) is not None  # which may have been trained with it
        own = [
            row.ours
            for row in names_of(model)
            if tensors.owns(row) or (has_dense and row.part == "pooler")
        ]
        shared.join(model, tensors.adapters(), own)
    else:
        shared.lend(model)
    return model


def _pretrained(config: AnsweringConfig, known: KnownModel, next_sentence: bool) -> list[Form]:
    length = served_length(known.config, config.max_seq_length)
    tokenizer = PlainTokenizer(known.text, special_tokens="keep")
    words = MaskedWordsForm(known, tokenizer, length, config.top_k)
    return [words, NextSentenceForm(known, tokenizer, length)] if next_sentence else [words]
