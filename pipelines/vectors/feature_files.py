"""The vectors of a text file's tokens as JSON lines, in the original's form, or NumPy arrays."""

import contextlib
import itertools
import json
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.progress import Progress
from pipelines.vectors.extract import FeatureExtractor, LineFeatures, find_features_model, pool
from pipelines.vectors.options import FeaturesConfig
from pipelines.vectors.texts import Texts, open_texts


def write_npz(
    path: str | Path,
    lines: Iterable[LineFeatures],
    lengths: np.ndarray,
    hidden_size: int,
    pooling: str,
    combination: str,
) -> None:
    """Writes `vectors`, `ids` and `offsets`; memory grows by some 30 bytes a line of text.

    An array's header states its size, so the lengths must be known before. `vectors` is float32
    [tokens of all lines, width], or [lines, width] if pooled; `ids` int32 [tokens of all lines];
    `offsets` int64 [lines + 1], where each line's tokens begin.

    Args:
        path: where to; it appears when it is whole.
        lengths: int32 [lines], their tokens.

    Example:
        >>> line = LineFeatures(["a", "b"], np.array([7, 8]), np.ones([1, 2, 4], np.float32))
        >>> path = Path(tempfile.mkdtemp()) / "vectors.npz"
        >>> write_npz(path, [line], np.array([2]), 4, "mean", "concat")
        >>> with np.load(path) as arrays:
        ...     {name: arrays[name].shape for name in arrays}
        {'vectors': (1, 4), 'ids': (2,), 'offsets': (2,)}
    """
    tokens = int(lengths.sum())
    rows = tokens if pooling == "none" else len(lengths)
    source = iter(lines)
    first = next(source)
    layers = 1 if combination == "sum" else len(first.vectors)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    folder = Path(path).parent
    with (
        open_whole(followed(path), "wb") as file,
        tempfile.TemporaryFile(dir=folder) as ids,  # a zip file takes one array at a time
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        with _array(archive, "vectors", (rows, layers * hidden_size), "<f4") as vectors:
            for line in _of_length(itertools.chain([first], source), lengths, path):
                vectors.write(pool(line, pooling, combination).astype("<f4").tobytes())
                ids.write(line.ids.astype("<i4").tobytes())
        ids.seek(0)
        with _array(archive, "ids", (tokens,), "<i4") as member:
            while part := ids.read(1 << 20):
                member.write(part)
        with _array(archive, "offsets", offsets.shape, "<i8") as member:
            member.write(offsets.astype("<i8").tobytes())


def _of_length(
    lines: Iterable[LineFeatures], lengths: np.ndarray, path: str | Path
) -> Iterator[LineFeatures]:
    for line, length in itertools.zip_longest(lines, lengths):
        if line is None or length is None or len(line.ids) != length:
            raise UserError(
                f"{path}: not written, because the text was changed while it was read; start again."
            )
        yield line


@contextlib.contextmanager
def _array(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: str
) -> Iterator[IO[bytes]]:
    """An array of the archive, to be filled row by row."""
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    # The default date of ZipInfo, as in np.savez: the same vectors are the same file.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        yield member


def write_json(config: FeaturesConfig, features: Iterable[LineFeatures]) -> None:
    """Writes google's form, `linex_index` and a vector a token and layer, or one vector a line."""
    with open_whole(followed(config.output_file)) as file:
        for number, line in enumerate(features):
            rounded = np.round(line.vectors.astype(np.float64), 6)
            tokens = [
                {
                    "token": token,
                    "layers": [
                        {"index": index, "values": rounded[layer, position].tolist()}
                        for layer, index in enumerate(config.layers)
                    ],
                }
                for position, token in enumerate(line.tokens)
            ]
            # "linex_index" is how the original spells it, and what its readers look for.
            record: dict[str, Any] = {"linex_index": number, "features": tokens}
            if config.pooling != "none":
                vector = pool(line, config.pooling, config.layer_combination)
                record = {"linex_index": number, "values": np.round(vector, 6).tolist()}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def extract_features(config: FeaturesConfig) -> int:
    """Writes the vectors of a file's lines; the file may be larger than the memory.

    Returns:
        The number of lines.
    """
    lines = open_texts(config.input_file, config.text_column, config.text_encoding)
    total = len(lines)  # a fault in the last line is found before the work begins
    config.unknown.check(lines, find_features_model(config).text, config.input_file)
    _check_output(config)
    extractor = FeatureExtractor(config)
    features = _with_progress(extractor, lines)
    if config.output_format == "json":
        write_json(config, features)
    else:
        write_npz(
            config.output_file,
            features,
            extractor.lengths(lines),
            extractor.hidden_size,
            config.pooling,
            config.layer_combination,
        )
    return total


def _check_output(config: FeaturesConfig) -> None:
    # An archive's arrays are gathered in files beside it.
    output = check_output(config.output_file, grows=config.output_format == "npz")
    if output.exists() and output.samefile(config.input_file):
        raise UserError(f"{output}: is the input, which would be replaced; name another file.")


def _with_progress(extractor: FeatureExtractor, lines: Texts) -> Iterator[LineFeatures]:
    progress = Progress("extract features", len(lines), "lines")
    for features in extractor.extract(lines):
        yield features
        progress.advance()
    progress.close()
