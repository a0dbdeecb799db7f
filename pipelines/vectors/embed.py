"""The vectors of all texts of a file, as a file."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.names import encoder_names
from keras_bert_impl.checkpoints.sentence_modules import read_dense
from keras_bert_impl.checkpoints.sources import read_weight
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, file_sha256
from keras_bert_impl.models.head_settings import POOLER
from keras_bert_impl.progress import Progress
from pipelines.vectors.options import EmbedConfig, VectorModelConfig
from pipelines.vectors.texts import count_texts, open_texts
from pipelines.vectors.vectors_file import INPUT_SHA256, check_origin, growing_vectors

if TYPE_CHECKING:
    from keras_bert_impl.serving.embedder import Embedder

_LOGGER = logging.getLogger(__name__)
_FORM = 3  # raised when the same texts would get other bytes


@dataclass(frozen=True)
class EmbedResult:
    """The files that were written.

    Attributes:
        rows: how many vectors.
        width: numbers of a vector.
        computed: how many of them now; the others were there from a run before.
    """

    rows: int
    width: int
    computed: int


def embed_file(config: EmbedConfig) -> EmbedResult:
    """Writes the vector of every text; memory does not grow with their number.

    A run that is killed goes on where it was with the same command, to the same bytes. What
    another model, another text or other options began is begun anew.
    """
    texts = open_texts(config.input_file, config.text_column, config.text_encoding)
    output = config.output_file
    total = count_texts(texts, config.input_file)
    if output.exists() and output.samefile(config.input_file):
        raise UserError(f"{output}: is the input, which would be replaced; name another file.")
    # Before the model is opened: int8 keeps the scales that it finds on the texts.
    text = find_model(config.model, do_lower_case=config.do_lower_case).text
    config.unknown.check(texts, text, config.input_file)
    check_output(output, grows=True)
    check_origin(output, Path(config.input_file))
    embedder = open_embedder(config, texts)
    with growing_vectors(output, embedder.width, embedder.texts_at_once) as vectors:
        if vectors.open(_description(config, texts.column, embedder)):
            _LOGGER.info("%s: was begun with other texts, model or options; begun anew.", output)
        done = vectors.rows
        if done:
            _LOGGER.info("%s: %d of %d vectors are there.", output, done, total)
        progress = Progress("embed", total - done, "texts")
        try:
            for block in embedder.embed_blocks(islice(texts, done, None)):
                vectors.append(block)
                progress.advance(len(block))
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"{vectors.kept} of {total} vectors are kept, and the same command goes on"
            )
            raise
        progress.close()
        vectors.finish(texts)
        return EmbedResult(vectors.rows, embedder.width, vectors.rows - done)


def open_embedder(config: VectorModelConfig, texts: Iterable[str]) -> "Embedder":
    """The model of the options."""
    # Found again below: what is wrong with the options or the model is told without TensorFlow.
    find_model(config.model, do_lower_case=config.do_lower_case)
    from keras_bert_impl.serving.embedder import Embedder

    return Embedder.from_pretrained(
        config.model,
        pooling=config.pooling,
        normalize=config.normalize,
        max_seq_length=config.max_seq_length,
        engine=config.engine or TENSORFLOW,
        precision=config.precision,
        deterministic=config.deterministic,
        calibration_texts=texts,
        do_lower_case=config.do_lower_case,
    )


def model_of_vectors(embedder: "Embedder") -> dict[str, Any]:
    """The part of a model without which vectors cannot be compared, as JSON values.

    Args:
        embedder: of a checkpoint; its weights are looked at there, for the model may not be built.
    """
    settings = embedder.settings
    return {
        "weights": weights_sha256(embedder.source, with_pooler=settings.pooling == POOLER),
        "sizes": {**embedder.config.to_dict(), "extra": None},
        "vocabulary_sha256": embedder.text.vocabulary.sha256,
        "casing": embedder.text.as_json(),
        "pooling": settings.pooling,
        "prompt": settings.prompt,
    }


def weights_sha256(source: ModelSource, with_pooler: bool) -> str:
    """Tells one encoder from another by its weights, in whatever format they are kept.

    Args:
        with_pooler: whether it counts; a model that comes without one has no use for it.

    Returns:
        A SHA-256, hexadecimal.
    """
    tensors, digest = source.tensors(), hashlib.sha256()
    for row in sorted(encoder_names(source.config.num_hidden_layers), key=lambda row: row.ours):
        found = tensors.find(row)
        if found is not None and (with_pooler or not row.ours.startswith("pooler/")):
            weight = np.ascontiguousarray(read_weight(tensors, found), np.float32)
            digest.update(row.ours.encode())
            digest.update(weight.data)
    for dense in (read_dense(source.folder) or ()) if with_pooler else ():
        digest.update(np.ascontiguousarray(dense, np.float32).data)
    return digest.hexdigest()


def _description(config: EmbedConfig, column: str | None, embedder: "Embedder") -> dict[str, Any]:
    """Everything that the vectors depend on."""
    return {
        "form": _FORM,
        INPUT_SHA256: file_sha256(Path(config.input_file)),
        "text_column": column,
        **config.text_encoding.settings,
        **model_of_vectors(embedder),
        "normalize": embedder.settings.normalize,
        "max_seq_length": embedder.max_seq_length,
        "engine": config.engine or TENSORFLOW,
        "precision": config.precision,
        "deterministic": config.deterministic,
        "scales": embedder.engine.identity(),
    }
