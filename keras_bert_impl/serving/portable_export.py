"""A model as ONNX, OpenVINO or LiteRT hold it: ids in, numbers out; texts by the client."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_impl.backend import need_extra, need_tensorflow
from keras_bert_impl.checkpoints.destination import GRAPHS_FOLDER, check_nothing_else
from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings, read_sentence_settings
from keras_bert_impl.checkpoints.sources import CONFIG_FILE
from keras_bert_impl.checkpoints.sources import TOKENIZER_FILE as CASING_FILE
from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    num_texts,
    served_length,
    task_settings,
    with_task_settings,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.openvino_graph import openvino_core
from keras_bert_impl.engines.portable_kernels import PortableKernels
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import followed, make_folder, whole_folder
from keras_bert_impl.layers import kernels
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.serving.clients import (
    CLIENT_FILE,
    EMBEDDING,
    LABEL,
    LABELS,
    LITERT,
    ONNX,
    OPENVINO,
    OUTPUTS,
    SCORE,
    SETTINGS_FILE,
    TOKENIZER_FILE,
    client_program,
    label_settings,
    text_settings,
)
from keras_bert_impl.serving.exported import DIGESTS_FILE, write_digests
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.verify import largest_difference, milliseconds_of, random_feature
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer

_PACKAGES = {
    ONNX: ("tf2onnx", "onnxruntime"),
    OPENVINO: ("openvino",),
    LITERT: ("ai_edge_litert",),
}
_VOCABULARY = "vocab.txt"
_FILES = {
    ONNX: ("model.onnx",),
    OPENVINO: ("model.xml", "model.bin"),
    LITERT: ("model.tflite",),
}
_BESIDE = (
    *(CLIENT_FILE, SETTINGS_FILE, TOKENIZER_FILE, _VOCABULARY, CONFIG_FILE, CASING_FILE),
    *(DIGESTS_FILE, GRAPHS_FOLDER),
)

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PortableResult:
    """The files that were written.

    Attributes:
        inputs: the names of what goes in, int32 [batch, length] each.
        outputs: the names of what comes out.
        answers: what the client answers, see `client_program`; None where there is no client,
            because the model takes more than texts are: positions of masks, choices.
        size: bytes of all files.
        largest_difference: between the runtime's numbers and the model's; None if not compared.
        milliseconds: the runtime's time for a row of 32 tokens, the fastest of five.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    answers: str | None
    size: int
    largest_difference: float | None
    milliseconds: float | None


def export_portable(
    opened: OpenedModel,
    folder: Path,
    form: str,
    max_seq_length: int | None = None,
    verify: bool = True,
) -> PortableResult:
    """Writes a model for another runtime, with vocabulary, settings and a client in plain Python.

    The folder appears when it is complete and, if asked for, compared with the model by its own
    runtime at two sizes.

    Args:
        folder: where to; an older export of the same form is replaced.
        max_seq_length: the client truncates texts to it; by default as in fine-tuning.
    """
    _need(form)
    _check_free(folder, form)
    sentence = read_sentence_settings(opened.source.folder)
    model = _model(opened, sentence)
    answers = _answers(opened, model)
    settings = _settings(opened, sentence, answers, max_seq_length)
    make_folder(folder.parent)
    config = opened.model.config
    model(_features(model, config, 1, 5))  # Keras exports what was called once
    with whole_folder(followed(folder)) as aside:
        _WRITERS[form](model, aside / _FILES[form][0])
        _write_beside(opened, aside, form, answers, settings)
        _write_model_settings(opened, aside, max_seq_length)
        run = _RUNNERS[form](aside / _FILES[form][0]) if verify else None
        difference = None if run is None else _compare(model, config, run, folder)
        write_digests(aside)
        size = sum(path.stat().st_size for path in aside.iterdir())
    timed = _features(model, config, 1, 32)
    return PortableResult(
        inputs=tuple(model.input),
        outputs=tuple(sorted(model.output)),
        answers=answers,
        size=size,
        largest_difference=difference,
        milliseconds=None if run is None else milliseconds_of(lambda: run(timed)),
    )


def _need(form: str) -> None:
    if form not in _PACKAGES:
        raise UserError(f"`format={form}` is unknown; choose {', '.join(_PACKAGES)}.")
    need_tensorflow(f"the format {form}")
    need_extra(form, _PACKAGES[form], f"`format={form}`")


def _check_free(folder: Path, form: str) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / _FILES[form][0]).is_file():
        raise UserError(
            f"{folder}: exists and is no export of the format {form}; name another `output_dir`, "
            "so that nothing of yours is replaced."
        )
    check_nothing_else(folder, (*_FILES[form], *_BESIDE))


def _model(opened: OpenedModel, sentence: SentenceSettings | None) -> Any:
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


def _answers(opened: OpenedModel, model: Any) -> str | None:
    if isinstance(model, BertEmbedder):
        return EMBEDDING
    if set(model.input) != set(ENCODER_INPUTS) or len(model.input["input_ids"].shape) > 2:
        return None
    if not isinstance(model, BertClassifier):
        return OUTPUTS
    if model.num_labels == 1:
        return SCORE
    return LABELS if opened.is_multi_label else LABEL


def _settings(
    opened: OpenedModel, sentence: SentenceSettings | None, answers: str | None, length: int | None
) -> dict[str, Any]:
    config = opened.model.config
    most = served_length(config, length, sentence.max_seq_length if sentence else None)
    settings = {"answers": answers, **text_settings(opened, most), **label_settings(opened)}
    if answers == EMBEDDING and sentence is not None and sentence.prompt:
        settings["prompt"] = sentence.prompt
    return settings


def _write_beside(
    opened: OpenedModel, folder: Path, form: str, answers: str | None, settings: dict[str, Any]
) -> None:
    """Writes vocabulary, tokenizer, settings and the client."""
    opened.text.vocabulary.write(folder / _VOCABULARY)
    keeps = task_settings(opened.model.config).get("special_tokens") == "keep"
    tokenizer = client_tokenizer(opened.text, settings["max_seq_length"], keeps)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    write_json(folder / SETTINGS_FILE, settings)
    if answers is not None:
        kept = opened.source.config
        program = client_program(
            form,
            answers,
            has_prompt="prompt" in settings,
            texts=1 if answers == EMBEDDING else num_texts(kept),
            long_text=long_texts_of(kept).long_text,
        )
        (folder / CLIENT_FILE).write_text(program, encoding="utf-8")


def _write_model_settings(opened: OpenedModel, folder: Path, length: int | None) -> None:
    """Writes what the model directory says of the model and its task, for `read_exported`."""
    config = opened.model.config
    if length is not None:
        config = with_task_settings(config, {**task_settings(config), "max_seq_length": length})
    write_json(folder / CONFIG_FILE, config.to_hugging_face())
    write_json(folder / CASING_FILE, opened.text.as_json())


def _write_onnx(model: Any, path: Path) -> None:
    with kernels.use(PortableKernels()):
        model.export(str(path), format="onnx", verbose=False)


def _write_openvino(model: Any, path: Path) -> None:
    import openvino

    from keras_bert_impl.engines.openvino_graph import openvino_graph

    openvino.save_model(openvino_graph(model), path, compress_to_fp16=False)


def _write_litert(model: Any, path: Path) -> None:
    import tensorflow as tf

    # Its own operations only: those of TensorFlow, which Keras lets in as well, need TensorFlow.
    own = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
    try:
        with kernels.use(PortableKernels()):
            model.export(str(path), format="litert", verbose=False, target_spec=own)
    except Exception as error:  # the converter's has no public name
        named = re.search(r"'(tf\.\w+)' op", str(error))
        reason = named[1] if named else str(error).strip().splitlines()[0]
        raise UserError(
            f"`format=litert`: LiteRT has not all operations of this model ({reason}), as of one "
            "with a BiLSTM; choose another format."
        ) from error


Run = Callable[[Arrays], dict[str, np.ndarray]]


def _run_onnx(path: Path) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda features: dict(zip(names, session.run(names, dict(features)), strict=True))


def _run_openvino(path: Path) -> Run:
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino_core().compile_model(path, "CPU", hint)
    return lambda features: {
        port.any_name: np.array(value) for port, value in compiled(features).items()
    }


def _run_litert(path: Path) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    ask = Interpreter(str(path)).get_signature_runner()
    return lambda features: dict(ask(**features))


_WRITERS = {ONNX: _write_onnx, OPENVINO: _write_openvino, LITERT: _write_litert}
_RUNNERS = {ONNX: _run_onnx, OPENVINO: _run_openvino, LITERT: _run_litert}


def _compare(model: Any, config: BertConfig, run: Run, folder: Path) -> float:
    """The largest difference at two sizes."""
    calls = []
    for rows, length in ((1, 5), (3, 9)):
        features = _features(model, config, rows, length)
        expected = {name: np.asarray(value) for name, value in model(features).items()}
        calls.append((expected, run(features)))
    try:
        return largest_difference(calls)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from error


def _features(model: Any, config: BertConfig, rows: int, length: int) -> dict[str, np.ndarray]:
    """Random ids for each input, of as many choices as the model has."""
    draws = np.random.default_rng(rows)
    length = min(length, config.max_position_embeddings)
    return {
        name: random_feature(name, [rows, *spec.shape[1:-1], length], config.vocab_size, draws)
        for name, spec in model.input.items()
    }
