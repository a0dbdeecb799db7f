"""Writing a model directory as a verified SavedModel that takes ids and raw text."""

import os
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from keras_bert_impl.checkpoints.destination import check_nothing_else
from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sentence_modules import read_sentence_settings
from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    served_length,
    task_settings,
)
from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import followed, make_folder, not_written, whole_folder
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.serving.clients import (
    CLIENT_FILE,
    SETTINGS_FILE,
    label_settings,
    text_client_program,
)
from keras_bert_impl.serving.exported import DIGESTS_FILE, write_digests
from keras_bert_impl.serving.opened_model import OpenedModel, open_model
from keras_bert_impl.serving.served_models import ServedClassifier, ServedEncoder, ServedPretrainer
from keras_bert_impl.serving.signatures import ServedModel, graph_function, text_specs
from keras_bert_impl.serving.verify import Verification, verify_saved_model
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer

_SAVED_MODEL_ENTRIES = (
    "saved_model.pb",
    "fingerprint.pb",
    "variables",
    "assets",
    CLIENT_FILE,
    DIGESTS_FILE,
)
VOCABULARY_ASSET, CASING_ASSET = "vocab.txt", "tokenizer_config.json"


def serve_model(
    opened: OpenedModel, top_k: int = 10, max_seq_length: int | None = None
) -> ServedModel:
    """Gives the signatures that fit a model's heads.

    Args:
        max_seq_length: texts are truncated to this many tokens; None is what the model was
            fine-tuned with, else its positions.
    """
    config = opened.model.config
    length = served_length(config, max_seq_length)
    if isinstance(opened.model, BertPretrainer):
        keeps_mask = GraphTokenizer(opened.text, special_tokens="keep")
        return ServedPretrainer(opened, keeps_mask, top_k, length)
    # One graph, because its tables are large and two signatures tokenize.
    keeps = task_settings(config).get("special_tokens") == "keep"
    graph_tokenizer = GraphTokenizer(opened.text, "keep" if keeps else "split")
    tokenizer = graph_function(graph_tokenizer, text_specs("texts"))
    if isinstance(opened.model, BertClassifier):
        long_texts = long_texts_of(config)
        return ServedClassifier(opened, tokenizer, length, long_texts)
    sentence = read_sentence_settings(opened.source.folder)
    if sentence and sentence.max_seq_length and not max_seq_length:
        length = min(sentence.max_seq_length, length)
    return ServedEncoder(opened, tokenizer, length, sentence)


@dataclass(frozen=True)
class ExportResult:
    """The files that were written.

    Attributes:
        signatures: each signature's name and what goes in and comes out.
        size: bytes of all files.
        verification: what the comparison found; None where it was not asked for.
    """

    signatures: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    size: int
    verification: Verification | None


def export_saved_model(
    served: ServedModel, opened: OpenedModel, folder: str | os.PathLike[str], verify: bool = True
) -> ExportResult:
    """Writes a SavedModel; the folder appears when it is complete and, if asked for, verified.

    Its assets hold the vocabulary (`vocab.txt`), the casing (`tokenizer_config.json`), labels and
    thresholds (`settings.json`) for clients that send ids; `client.py` next to them sends texts.

    Args:
        folder: where to; an older SavedModel of that name is replaced.
    """
    final = followed(folder)
    free = not final.exists() or (final.is_dir() and not any(final.iterdir()))
    if not free and not (final / "saved_model.pb").exists():
        raise UserError(
            f"{final}: exists and is no SavedModel; name another `output_dir`, so that nothing of "
            "yours is replaced."
        )
    if not free:
        check_nothing_else(final, _SAVED_MODEL_ENTRIES)
    make_folder(final.parent)
    with whole_folder(final) as aside:
        try:
            tf.saved_model.save(served, str(aside), signatures=served.signatures())
        except tf.errors.OpError as error:
            raise not_written(final, reason_of(error)) from error
        _write_assets(opened, aside / "assets")
        if signatures := served.text_signatures():
            program = text_client_program(signatures)
            (aside / CLIENT_FILE).write_text(program, encoding="utf-8")
        try:
            verification = verify_saved_model(served, opened, aside) if verify else None
        except UserError as error:
            raise UserError(f"{final}: {error}") from error
        write_digests(aside)
        size = sum(path.stat().st_size for path in aside.rglob("*") if path.is_file())
    return ExportResult(served.interface(), size, verification)


def _write_assets(opened: OpenedModel, folder: Path) -> None:
    make_folder(folder)
    opened.text.vocabulary.write(folder / VOCABULARY_ASSET)
    write_json(folder / CASING_ASSET, opened.text.as_json())
    write_json(folder / SETTINGS_FILE, label_settings(opened))


def export_model(
    model: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    max_seq_length: int | None = None,
    verify: bool = True,
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
