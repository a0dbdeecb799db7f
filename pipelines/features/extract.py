"""The encoder's vectors of a text file's lines, as a file."""

from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder
from keras_bert_impl.progress import Progress
from pipelines.features.config import FeaturesConfig
from pipelines.features.extractor import FeatureExtractor, LineFeatures
from pipelines.features.writers import write_json, write_npz
from pipelines.vectors.texts import Texts, open_texts


def extract_features(config: FeaturesConfig) -> int:
    """Writes the vectors of a file's lines; the file may be larger than the memory.

    Returns:
        The number of lines.

    Raises:
        UserError: a file is missing or not UTF-8, or the checkpoint is not what it should be.
    """
    lines = open_texts(config.input_file, config.text_column)
    total = len(lines)  # a fault in the last line is found before the work begins
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
    output = Path(config.output_file)
    make_folder(output.parent)
    if output.is_dir():
        raise UserError(f"{output}: is a folder; name a file in it with `output_file`.")
    if output.exists() and output.samefile(config.input_file):
        raise UserError(f"{output}: is the input, which would be replaced; name another file.")


def _with_progress(extractor: FeatureExtractor, lines: Texts) -> Iterator[LineFeatures]:
    progress = Progress("extract features", len(lines), "lines")
    for features in extractor.extract(lines):
        yield features
        progress.advance()
    progress.close()
