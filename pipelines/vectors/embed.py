"""The vectors of all texts of a file, as a file that grows block by block and survives a kill."""

import contextlib
import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.backend import need_extra
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.names import Names, encoder_names
from keras_bert_impl.checkpoints.sentence_modules import MODULES_FILE, SentenceSettings, read_dense
from keras_bert_impl.checkpoints.sources import read_weight
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.engines.engine import KerasEngine
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import (
    check_output,
    file_sha256,
    followed,
    is_named,
    make_folder,
    open_whole,
    owned,
    remove,
    without_links,
    write_all,
    writing,
)
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.models.head_settings import POOLER
from keras_bert_impl.progress import Progress
from keras_bert_impl.serving.answerer import REFUSE, log_left_out
from keras_bert_impl.serving.embedder import Embedder, sentence_settings_of
from keras_bert_impl.serving.exported import ExportedModel, find_exported, located
from keras_bert_impl.serving.smaller_vectors import (
    FLOAT32,
    INT8,
    TYPES,
    check_size,
    quantized,
    ranges_of,
)
from pipelines.corpora.documents import refuse_output_among_input
from pipelines.vectors.options import PARQUET, EmbedConfig, VectorModelConfig
from pipelines.vectors.texts import count_texts, open_texts

_LOGGER = logging.getLogger(__name__)
_NUMBER = TYPES[FLOAT32]
_VECTORS, _DESCRIPTION = "vectors", "description.json"
_FORM = 3  # raised when the same texts would get other bytes


class EmbedResult(NamedTuple):
    """How many vectors were written, of how many numbers, and how many were computed now."""

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
    assert output is not None
    total = count_texts(texts, config.input_file)
    if output.suffix == PARQUET:
        need_extra("parquet", ["pyarrow"], f"`output_file={output}`")
    refuse_output_among_input([config.input_file], [output], "output_file")
    # Before the model is opened: int8 keeps the scales that it finds on the texts.
    config.unknown.check(texts, known_model(config).text, config.input_file)
    check_output(output, grows=True)
    check_origin(output, Path(config.input_file))
    embedder = open_embedder(config, texts)
    embedder.refuses_long = config.long_text == REFUSE
    description = _description(config, texts.column, embedder)
    width = check_size(config.dimensions, embedder.width)
    with growing_vectors(output, width, embedder.texts_at_once, description) as vectors:
        if done := vectors.rows:
            _LOGGER.info("%s: %d of %d vectors are there.", output, done, total)
        embedder.num_texts = done
        progress = Progress("embed", total - done, "texts")
        embedder.advance = progress.advance
        left = islice(texts, done, None)
        try:
            for block in embedder.embed_blocks(left, dimensions=config.dimensions):
                vectors.append(block)
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"{vectors.kept} of {total} vectors are kept, and the same command goes on"
            )
            raise
        progress.close()
        vectors.finish(texts, config.vector_type)
        _log_left_out(config.input_file, embedder, texts, done)
        return EmbedResult(vectors.rows, width, vectors.rows - done)


def embed_texts(config: EmbedConfig) -> Iterator[str]:
    """The vectors of the texts of the options, a JSON object each."""
    embedder = open_embedder(config, config.text)
    embedder.refuses_long = config.long_text == REFUSE
    vectors = embedder.embed(list(config.text), dimensions=config.dimensions)
    for text, vector in zip(config.text, quantized(vectors, config.vector_type), strict=True):
        yield json_text({"text": text, "embedding": vector.tolist()}, ensure_ascii=False)
    _log_left_out("the texts", embedder, config.text)


def _log_left_out(where: str, embedder: Embedder, texts: Iterable[str], done: int = 0) -> None:
    count, most = embedder.num_texts, embedder.max_seq_length
    empty = sum(not text.strip() for text in texts)
    log_left_out(where, count, empty=empty, cut=0, most=most)
    where = f"{where}, as far as it was computed now" if done else where
    log_left_out(where, count - done, empty=0, cut=embedder.num_truncated, most=most)


def open_embedder(config: VectorModelConfig, texts: Iterable[str]) -> Embedder:
    """The model of the options, whose default prompt is theirs."""
    # Found again below: what is wrong with the options or the model shows without TensorFlow.
    source = known_model(config)
    check_size(config.dimensions, source.config.hidden_size)
    if isinstance(source, ModelSource) and not is_named(source.folder / MODULES_FILE):
        said = "its vectors were not trained to be compared; train them with run_embedder, or name"
        _LOGGER.warning("%s: %s a sentence model (with modules.json).", config.model, said)
    prompt = config.prompt
    if config.prompt_name is not None:
        prompt = sentence_settings_of(source).prompt_of(config.prompt_name)
    return Embedder.from_pretrained(
        config.model,
        pooling=config.pooling,
        normalize=config.normalize,
        max_seq_length=config.max_seq_length,
        prompt=prompt,
        engine=config.engine,
        precision=config.precision,
        deterministic=config.deterministic,
        calibration_texts=texts,
        do_lower_case=config.do_lower_case,
        adapter=config.adapter,
    )


def known_model(config: VectorModelConfig) -> ModelSource | ExportedModel:
    """What is known of the model of the options before it is opened."""
    own: dict[str, Any] = {"do_lower_case": config.do_lower_case, "adapter": config.adapter}
    told = {"pooling": config.pooling, "normalize": config.normalize, **own}
    model = located(config.model)
    return find_exported(model, config.engine, **told) or find_model(model, **own)


def model_of_vectors(
    known: ModelSource | ExportedModel | Embedder, settings: SentenceSettings
) -> dict[str, Any]:
    """The part of a model without which vectors cannot be compared, as JSON values."""
    return {
        "weights": weights_sha256(known, with_pooler=settings.pooling == POOLER),
        "sizes": {**known.config.to_dict(), "extra": None},
        "vocabulary_sha256": known.text.vocabulary.sha256,
        "casing": known.text.as_json(),
        "pooling": settings.pooling,
        "prompt": settings.prompt,
    }


def weights_sha256(known: ModelSource | ExportedModel | Embedder, with_pooler: bool) -> str:
    """Tells one encoder from another by its weights, in whatever format they are kept.

    Of an embedder that computes by its Keras model they are the present ones, trained or not.
    """
    if isinstance(known, Embedder) and not isinstance(known.engine, KerasEngine):
        known = known.source
    digest = hashlib.sha256()
    if isinstance(known, ExportedModel):  # its files have the way to the vector, too
        for file in known.files:
            digest.update(file_sha256(file).encode())
        return digest.hexdigest()
    weight_of = _weights_of(known, with_pooler)
    for row in sorted(encoder_names(known.config.num_hidden_layers), key=lambda row: row.ours):
        weight = weight_of(row) if with_pooler or not row.ours.startswith("pooler/") else None
        if weight is not None:
            digest.update(row.ours.encode())
            digest.update(np.ascontiguousarray(weight, np.float32).data)
    return digest.hexdigest()


def _weights_of(known: ModelSource | Embedder, with_pooler: bool) -> Callable[[Names], Any]:
    """What gives each weight; that of the pooler is the dense layer's where there is one."""
    if isinstance(known, Embedder):
        weights = known.plain_weights()
        return lambda row: weights.get(row.ours)
    tensors, dense = known.tensors(), read_dense(known.folder) if with_pooler else None

    def weight_of(row: Names) -> Any:
        if dense is not None and row.ours.startswith("pooler/"):
            return dense.kernel if row.ours.endswith("/kernel") else dense.bias
        found = tensors.find(row)
        return None if found is None else read_weight(tensors, found)

    return weight_of


def _description(config: EmbedConfig, column: str | None, embedder: Embedder) -> dict[str, Any]:
    """Everything that the vectors depend on."""
    source = embedder.source
    engine = source.engine if isinstance(source, ExportedModel) else TENSORFLOW
    return {
        "form": _FORM,
        "input_sha256": file_sha256(Path(config.input_file)),
        "text_column": column,
        **config.text_encoding.settings,
        **model_of_vectors(embedder, embedder.settings),
        "normalize": embedder.settings.normalize,
        "max_seq_length": embedder.max_seq_length,
        "dimensions": config.dimensions,
        "engine": config.engine or engine,
        "precision": config.precision,
        "deterministic": config.deterministic,
        "scales": embedder.engine.identity(),
    }


class GrowingVectors:
    """The vectors that are there so far, in a folder next to the output.

    What was begun with the same description goes on; anything else is begun anew. Only whole blocks
    are kept, so that what follows them is computed in the same batches, to the same bytes.
    """

    def __init__(
        self, output: Path, folder: Path, width: int, block: int, description: Mapping[str, Any]
    ) -> None:
        self._output, self._folder, self._description = output, folder, description
        self._width, self._block = width, block
        said, vectors = self._folder / _DESCRIPTION, self._folder / _VECTORS
        known = read_json_object(said) if said.is_file() else None
        if known not in (None, description):
            _LOGGER.info("%s: was begun with other texts, model or options; begun anew.", output)
        if known != description or not vectors.is_file():
            remove(vectors)
            _write(said, description)
        with writing(output):
            # Unbuffered: what a full disk did not take is not tried again when it is closed.
            self._file = vectors.open("a+b", 0)
            size = block * width * _NUMBER.itemsize
            whole = self._file.tell() // size
            self._file.truncate(whole * size)
        self.rows = whole * block

    @property
    def kept(self) -> int:
        """How many vectors a stopped run leaves to the next one: those of whole blocks."""
        return self.rows // self._block * self._block

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Adds a block, and sees that it is on disk."""
        with writing(self._output):
            write_all(self._file, np.ascontiguousarray(vectors, _NUMBER).tobytes())
        self.rows += len(vectors)

    def finish(self, texts: Iterable[str], kind: str = FLOAT32) -> None:
        """Writes the output, next to an array what it was made from, and removes the folder."""
        self._file.close()
        ranges = ranges_of(self._blocks()) if kind == INT8 else None  # of all vectors
        said = {"vector_type": kind, **({} if ranges is None else {"ranges": ranges.tolist()})}
        blocks = (quantized(block, kind, ranges) for block in self._blocks())
        width = quantized(np.zeros([1, self._width], np.float32), kind, ranges).shape[1]
        if self._output.suffix == PARQUET:
            self._write_parquet(texts, blocks, width, said)
        else:
            # In this order: an array never stands beside what is said of another one.
            remove(origin_of(self._output))
            self._write_npy(blocks, width, kind)
            _write(origin_of(self._output), {**self._description, **said})
        shutil.rmtree(self._folder)

    def _write_npy(self, blocks: Iterable[NDArray[Any]], width: int, kind: str) -> None:
        header = {"descr": TYPES[kind].str, "fortran_order": False, "shape": (self.rows, width)}
        with open_whole(followed(self._output), "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(block.tobytes())

    def _write_parquet(
        self, texts: Iterable[str], blocks: Iterable[NDArray[Any]], width: int, said: dict[str, Any]
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        output, source = self._output, iter(texts)
        vector = pa.list_(pa.from_numpy_dtype(TYPES[said["vector_type"]]), width)
        about = {name: json_text(value) for name, value in said.items()}
        schema = pa.schema([("text", pa.string()), ("embedding", vector)], about)
        with open_whole(followed(output), "wb") as file, pq.ParquetWriter(file, schema) as writer:
            for block in blocks:
                numbers = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), width)
                words = list(islice(source, len(block)))
                if len(words) < len(block):
                    raise UserError(f"{output}: not written, as the text changed; start again.")
                writer.write_table(pa.table([pa.array(words), numbers], schema=schema))

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """The vectors from the beginning, [texts of a block, width]."""
        # Read, not mapped: a mapped file counts as the process' memory, in the end all of it.
        with (self._folder / _VECTORS).open("rb") as file:
            while len(block := np.fromfile(file, _NUMBER, self._block * self._width)):
                yield block.reshape(-1, self._width)


@contextlib.contextmanager
def growing_vectors(output: Path, *how: Any) -> Iterator[GrowingVectors]:
    """Gives the vectors that are there so far; no other process can have them meanwhile."""
    folder = without_links(output.with_name(f".{output.name}.incomplete"))
    if not folder.is_dir():
        remove(folder)
    make_folder(folder)
    busy = f"{output}: another process is writing it; wait for it or name another file."
    with owned(output.with_name(f".{output.name}.lock"), busy):
        yield GrowingVectors(output, folder, *how)


def origin_of(vectors: Path) -> Path:
    """The file that says of which text, by which model and options NAME.npy was made."""
    return vectors.with_name(f"{vectors.name}.json")


def check_origin(output: Path, input_file: Path) -> None:
    """Sees that what is kept beside an array replaces nothing but an older one of its kind."""
    beside = origin_of(output)
    if output.suffix == PARQUET or not is_named(beside):
        return
    refuse_output_among_input([str(input_file)], [beside], "output_file")
    ours = False
    with contextlib.suppress(UserError):
        ours = "input_sha256" in read_json_object(beside)
    if not ours:
        raise UserError(f"{beside}: would be replaced, but is not embed's; name another output.")


def _write(path: Path, description: Mapping[str, Any]) -> None:
    with open_whole(path) as file:
        file.write(json_text(description, indent=2, sort_keys=True))
