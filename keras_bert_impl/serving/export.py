"""A model directory written for a server or a runtime: every format, verified, with a client."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.backend import need_extra, need_tensorflow
from keras_bert_impl.checkpoints.model_card import (
    CARD_FILE,
    edited_card,
    export_card,
    model_card,
    read_card,
    write_card,
)
from keras_bert_impl.checkpoints.model_directory import (
    GRAPHS_FOLDER,
    check_apart,
    check_replaced,
    write_json,
)
from keras_bert_impl.checkpoints.restore import check_weights
from keras_bert_impl.checkpoints.sentence_modules import (
    MODULES_FILE,
    SentenceSettings,
    read_sentence_settings,
)
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
)
from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    num_texts,
    served_length,
    task_settings,
    with_task_settings,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.openvino_graph import beside_the_main_thread, openvino_graph
from keras_bert_impl.engines.portable_kernels import PortableKernels
from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import StrPath, followed, make_folder, not_written, whole_folder
from keras_bert_impl.layers import kernels
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.serving import client
from keras_bert_impl.serving.exported import (
    DIGESTS_FILE,
    EMBEDDING,
    LABEL,
    LABELS,
    OUTPUTS,
    SCORE,
    SETTINGS_FILE,
    write_digests,
)
from keras_bert_impl.serving.opened_model import OpenedModel, open_model
from keras_bert_impl.serving.served_models import ServedClassifier, ServedEncoder, ServedPretrainer
from keras_bert_impl.serving.signatures import ServedModel, graph_function, text_specs
from keras_bert_impl.serving.static_vectors import STATIC, read_static
from keras_bert_impl.serving.verify import (
    Arrays,
    Ask,
    InputSpec,
    Specs,
    Verification,
    random_inputs,
    verify_export,
)
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer

SAVED_MODEL, ONNX, OPENVINO, LITERT = "saved_model", "onnx", "openvino", "litert"

_CLIENT, _TOKENIZER, _ASSETS = "client.py", "tokenizer.json", "assets"
_OF_ONNX = ("tf2onnx", "onnxruntime")
_PACKAGES = {ONNX: _OF_ONNX, OPENVINO: ("openvino",), LITERT: ("ai_edge_litert",)}
_FILES = {
    SAVED_MODEL: ("saved_model.pb", "fingerprint.pb", "variables", _ASSETS),
    ONNX: ("model.onnx",),
    OPENVINO: ("model.xml", "model.bin"),
    LITERT: ("model.tflite",),
    # No model directory has the first one, so that none is replaced.
    STATIC: (DIGESTS_FILE, WEIGHTS_FILE, MODULES_FILE),
}
# Without it a folder is the export of another program.
_MARKS = {
    SAVED_MODEL: f"{_ASSETS}/{SETTINGS_FILE}",
    STATIC: DIGESTS_FILE,
    **dict.fromkeys(_PACKAGES, SETTINGS_FILE),
}
_BESIDE = (
    *(_CLIENT, DIGESTS_FILE, SETTINGS_FILE, _TOKENIZER, VOCABULARY_FILE, CONFIG_FILE),
    *(TOKENIZER_FILE, GRAPHS_FOLDER, CARD_FILE),
)
_ANSWERS = {
    frozenset({"label", "logits", "probabilities"}): LABEL,
    frozenset({"labels", "logits", "probabilities"}): LABELS,
    frozenset({"score"}): SCORE,
    frozenset({"embedding"}): EMBEDDING,
}


def serve_model(
    opened: OpenedModel, top_k: int = 10, max_seq_length: int | None = None
) -> ServedModel:
    """Gives the signatures that fit a model's heads."""
    sentence = read_sentence_settings(opened.source.folder)
    config = _config_of(opened, sentence)
    length = served_length(config, max_seq_length)
    if isinstance(opened.model, BertPretrainer):
        keeps_mask = GraphTokenizer(opened.text, special_tokens="keep")
        return ServedPretrainer(opened, keeps_mask, top_k, length)
    # One graph, because its tables are large and two signatures tokenize.
    keeps = task_settings(config).get("special_tokens") == "keep"
    graph_tokenizer = GraphTokenizer(opened.text, "keep" if keeps else "split")
    tokenizer = graph_function(graph_tokenizer, text_specs("texts"))
    if isinstance(opened.model, BertClassifier):
        return ServedClassifier(opened, tokenizer, length, long_texts_of(config))
    return ServedEncoder(opened, tokenizer, length, sentence)


def _config_of(opened: OpenedModel, sentence: SentenceSettings | None) -> BertConfig:
    """The configuration; a sentence model's length is its files', whatever that of its task was."""
    config = opened.model.config
    if sentence is None or not isinstance(opened.model, BertEncoder):
        return config
    kept = {name: x for name, x in task_settings(config).items() if name != "max_seq_length"}
    if sentence.max_seq_length:
        kept["max_seq_length"] = min(sentence.max_seq_length, config.max_position_embeddings)
    return with_task_settings(config, kept)


@dataclass(frozen=True)
class ExportResult:
    """The files that were written.

    `answers` is what the client answers, a name of `exported`; None where there is no client,
    because the model takes more than texts.
    """

    signatures: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    answers: str | None
    size: int
    verification: Verification | None


def export_model(
    model: StrPath, output_dir: StrPath, *, max_seq_length: int | None = None, verify: bool = True
) -> ExportResult:
    """Writes a model directory as a SavedModel that takes ids and raw text.

    Args:
        model: the model directory, e.g. from `save_pretrained`.
        output_dir: the SavedModel's folder; an older SavedModel there is replaced.
        max_seq_length: the most tokens of a row; None is what the model was trained with, else its
            positions.
        verify: load the result again and compare it with the model.

    Raises:
        UserError: the model directory cannot be opened, or the SavedModel cannot be written.
    """
    opened = open_model(model)
    served = serve_model(opened, max_seq_length=max_seq_length)
    return export_saved_model(served, opened, output_dir, verify)


def export_saved_model(
    served: ServedModel, opened: OpenedModel, folder: StrPath, verify: bool = True
) -> ExportResult:
    """Writes a SavedModel; its assets hold what a client that sends ids needs besides."""
    asked = served.text_signatures()
    first = min(asked, key=lambda one: len(one.inputs), default=None)
    answers = first and _ANSWERS.get(first.outputs, OUTPUTS)
    asks: dict[str, Any] = {"asks": [[one.name, *one.inputs] for one in asked]}
    if first and first.endings:
        asks["endings"] = first.endings
    settings = {"answers": answers, **label_settings(opened), **asks}

    def fill(aside: Path) -> None:
        tf.saved_model.save(served, str(aside), signatures=dict(served.functions))
        make_folder(aside / _ASSETS)
        _write_beside(opened, aside, aside / _ASSETS, settings)

    specs = dict[str, dict[str, InputSpec]]()
    for name, inputs in served.specs.items():
        specs[name] = {x.name: InputSpec(x.shape.as_list(), x.dtype == tf.string) for x in inputs}
    about = verify, _card(opened, SAVED_MODEL, settings)
    written = write_export(opened, Path(folder), SAVED_MODEL, fill, specs, served.call, *about)
    return ExportResult(served.interface(), answers, *written)


def export_portable(
    opened: OpenedModel,
    folder: Path,
    form: str,
    max_seq_length: int | None = None,
    verify: bool = True,
) -> ExportResult:
    """Writes a model of ids for another runtime."""
    if form not in _PACKAGES:
        raise UserError(f"`format={form}` is unknown; choose {', '.join(_PACKAGES)}.")
    need_tensorflow(f"the format {form}")
    need_extra(form, _PACKAGES[form], f"`format={form}`")
    sentence = read_sentence_settings(opened.source.folder)
    model = _model_of_ids(opened, sentence)
    answers, config = _answers_of_ids(opened, model), _config_of(opened, sentence)
    length = served_length(config, max_seq_length)
    settings = _settings_of_ids(opened, answers, length)
    if answers == EMBEDDING and sentence is not None:
        for name in ("prompt", "prompts", "normalize", "dimensions", "similarity"):
            settings[name] = getattr(sentence, name)
    specs = {"serving_default": {name: InputSpec(x.shape) for name, x in model.input.items()}}

    def expected(_: str, features: Arrays) -> Arrays:
        return dict(model(features))

    def fill(aside: Path) -> None:
        # Keras exports what was called once.
        model(random_inputs(specs["serving_default"], opened.text.vocabulary, 1, 5))
        _WRITERS[form](model, aside / _FILES[form][0])
        _write_beside(opened, aside, aside, settings)
        keeps = task_settings(config).get("special_tokens") == "keep"
        client_tokenizer(opened.text, length, keeps).save(str(aside / _TOKENIZER))
        kept = task_settings(config)
        if max_seq_length:
            kept["max_seq_length"] = max_seq_length
        write_json(aside / CONFIG_FILE, with_task_settings(config, kept).to_hugging_face())

    card = _card(opened, form, settings)
    written = write_export(opened, folder, form, fill, specs, expected, verify, card)
    names = tuple(model.input), tuple(sorted(model.output))
    return ExportResult({"serving_default": names}, answers, *written)


def write_export(
    opened: OpenedModel,
    folder: Path,
    form: str,
    fill: Callable[[Path], None],
    specs: Specs,
    expected: Ask,
    verified: bool,
    card: str,
) -> tuple[int, Verification | None]:
    """Writes an export; the folder appears when it is complete and, if asked for, verified.

    An older export of the same format is replaced, but for a card that a person edited.
    """
    check_weights({x.path: x for x in opened.model.weights}, opened.source.checkpoint)
    final = followed(folder)
    kind = "SavedModel" if form == SAVED_MODEL else f"export of the format {form}"
    marks, known = (_FILES[form][0], _MARKS[form]), (*_FILES[form], *_BESIDE)
    older = check_replaced(final, kind, marks, known, "`output_dir`")
    check_apart(str(opened.source.checkpoint), final, opened.source.tensors().files)
    make_folder(final.parent)
    with whole_folder(final, replaces=older) as aside:
        try:
            fill(aside)
            write_card(aside, edited_card(final) or card)
        except tf.errors.OpError as error:
            raise not_written(final, reason_of(error)) from error
        sizes = opened.text.vocabulary, opened.model.config
        try:
            found = _loaded(form, aside) if verified else None
            verification = found and verify_export(specs, expected, found, *sizes)
        except UserError as error:
            raise UserError(f"{final}: {error}") from error
        write_digests(aside)
        size = sum(path.stat().st_size for path in aside.rglob("*") if path.is_file())
    return size, verification


def _loaded(form: str, folder: Path) -> Ask:
    """An export in its own runtime, as its client loads it."""
    if form == STATIC:
        engine = read_static(folder).open()
        return lambda _, features: engine.compute_one(features)
    if form != SAVED_MODEL:
        file = _FILES[form][0]
        compute = beside_the_main_thread(lambda: client.RUNTIMES[file](folder / file))
        return lambda _, features: compute(dict(features))
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    try:
        loaded = tf.saved_model.load(str(folder))
    except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
        raise UserError(f"the SavedModel cannot be loaded again ({reason_of(error)}).") from error

    def ask(name: str, arrays: Arrays) -> Arrays:
        tensors = {key: tf.constant(value) for key, value in arrays.items()}
        return dict(loaded.signatures[name](**tensors))

    return ask


def _card(opened: OpenedModel, form: str, settings: dict[str, Any]) -> str:
    """The card beside the model, or a new one, with the use of this export."""
    there, use = None, [f"## Use\n\nIn this folder, an export (`{form}`)."]
    if opened.source.folder == opened.source.checkpoint:  # beside a prefix it may be of anything
        there = read_card(opened.source.folder / CARD_FILE)
    if settings["answers"] is None:
        use += ["There is no `client.py`: the model takes more than texts."]
    else:
        signature, *names = min(settings["asks"], key=len)
        names[1:] *= settings.get("endings", 1)
        texts = '" "'.join(["a [MASK] text"] if signature == "fill_mask_text" else names)
        install = f"pip install {client.PACKAGES[_FILES[form][0]]}"
        use += [f'```sh\n{install}\npython client.py "{texts}"\n```']
    if form == OPENVINO:
        use += ["`keras-bert predict --model=.` and `keras-bert serve --model=.` open it."]
    card = there or model_card(opened.model.config, opened.text)
    return export_card(card, "\n\n".join(use) + "\n")


def _write_beside(opened: OpenedModel, root: Path, folder: Path, settings: dict[str, Any]) -> None:
    """Writes vocabulary, casing, settings, and the client where it can ask with texts."""
    opened.text.vocabulary.write(folder / VOCABULARY_FILE)
    write_json(folder / TOKENIZER_FILE, opened.text.as_json())
    write_json(folder / SETTINGS_FILE, settings)
    if settings["answers"] is not None:
        (root / _CLIENT).write_bytes(Path(client.__file__).read_bytes())


def _model_of_ids(opened: OpenedModel, sentence: SentenceSettings | None) -> Any:
    """The model; where the directory says how a text becomes a vector, with its pooling.

    An output of weights that the directory does not hold is left out.
    """
    model = opened.model
    if sentence is not None and isinstance(model, BertEncoder):
        embedder = BertEmbedder(model.config, sentence.pooling, sentence.normalize)
        embedder.encoder.set_weights(model.get_weights())
        return embedder
    outputs = opened.trained(model.output)
    return model if len(outputs) == len(model.output) else keras.Model(model.input, outputs)


def _answers_of_ids(opened: OpenedModel, model: Any) -> str | None:
    if isinstance(model, BertEmbedder):
        return EMBEDDING
    if set(model.input) != set(ENCODER_INPUTS) or len(model.input["input_ids"].shape) > 2:
        return None
    if not isinstance(model, BertClassifier):
        return OUTPUTS
    if model.num_labels == 1:
        return SCORE
    return LABELS if opened.is_multi_label else LABEL


def _settings_of_ids(opened: OpenedModel, answers: str | None, length: int) -> dict[str, Any]:
    """How texts become ids, and a model's numbers answers, for clients in any language."""
    text, texts = opened.text, 1 if answers == EMBEDDING else num_texts(opened.source.config)
    asks = [["", "text"], ["", "text_a", "text_b"]]
    return {
        "answers": answers,
        "asks": asks if texts is None else [asks[texts - 1]],
        "long_text": long_texts_of(opened.source.config).long_text,
        "max_seq_length": length,
        "pad_id": text.vocabulary.pad_id,
        "tokenizer": {
            "lowercase": text.do_lower_case,
            "strip_accents": text.removes_accents,
            "unicode_form": text.unicode_form,
        },
        **label_settings(opened),
    }


def label_settings(opened: OpenedModel) -> dict[str, Any]:
    """The names of a model's labels in the order of its logits, and its thresholds."""
    settings: dict[str, Any] = {}
    if len(opened.labels) > 1:
        settings["labels"] = list(opened.labels)
    if opened.is_multi_label:
        settings["threshold"] = 0.5
    own = task_settings(opened.source.config)
    return {**settings, **{name: x for name, x in own.items() if name.endswith("_threshold")}}


def _write_onnx(model: Any, path: Path) -> None:
    with kernels.use(PortableKernels()):
        model.export(str(path), format="onnx", verbose=False)


def _write_openvino(model: Any, path: Path) -> None:
    import openvino

    openvino.save_model(openvino_graph(model), path, compress_to_fp16=False)


def _write_litert(model: Any, path: Path) -> None:
    # Its own operations only: those of TensorFlow, which Keras lets in as well, need TensorFlow.
    own = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
    try:
        with kernels.use(PortableKernels()):
            model.export(str(path), format="litert", verbose=False, target_spec=own)
    except Exception as error:  # the converter's has no public name
        named = re.search(r"'(tf\.\w+)' op", str(error))
        reason = named[1] if named else str(error).strip().splitlines()[0]
        fault = f"LiteRT has not all operations of this model ({reason}), as of one with a BiLSTM"
        raise UserError(f"`format=litert`: {fault}; choose another format.") from error


_WRITERS = {ONNX: _write_onnx, OPENVINO: _write_openvino, LITERT: _write_litert}
