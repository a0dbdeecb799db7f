"""The encoder's vectors of a text file's lines, as a file."""

from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, text_lines
from keras_bert_impl.progress import Progress
from pipelines.features.config import FeaturesConfig
from pipelines.features.extractor import FeatureExtractor, LineFeatures
from pipelines.features.writers import write_json, write_npz

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextLines:
    r"""A UTF-8 file, one input a line; only `\n` ends a line, and one line is held at a time.

    `str.splitlines` would also cut at characters inside a sentence. A byte-order mark at the
    start and `\r` at the end of a line are left out.

    Args:
        path: the file; it is read once here, so that a fault in its last line is found before
            the work begins.

    Raises:
        UserError: the file is missing, empty or not UTF-8.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_bytes(b"one\r\n\nthree")
        >>> lines = TextLines(path)
        >>> len(lines), list(lines), list(lines)
        (3, ['one', '', 'three'], ['one', '', 'three'])
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._count = sum(1 for _ in self)
        if not self._count:
            raise UserError(f"{path}: holds a byte-order mark and no line; name a file with text.")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return text_lines(self._path)


def extract_features(config: FeaturesConfig) -> int:
    """Writes the vectors of a file's lines; the file may be larger than the memory.

    Returns:
        The number of lines.

    Raises:
        UserError: a file is missing or not UTF-8, or the checkpoint is not what it should be.
    """
    lines = TextLines(config.input_file)
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
    return len(lines)


def _check_output(config: FeaturesConfig) -> None:
    output = Path(config.output_file)
    make_folder(output.parent)
    if output.is_dir():
        raise UserError(f"{output}: is a folder; name a file in it with `output_file`.")
    if output.exists() and output.samefile(config.input_file):
        raise UserError(f"{output}: is the input, which would be replaced; name another file.")


def _with_progress(extractor: FeatureExtractor, lines: TextLines) -> Iterator[LineFeatures]:
    progress = Progress("extract features", len(lines), "lines")
    for features in extractor.extract(lines):
        yield features
        progress.advance()
    progress.close()
