"""The options of a run that chooses endings."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, bounded, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.options import FineTuningConfig, SplitFiles

ANY_NUMBER = 1
"""Of a model that does not say among how many endings it chooses: each is a row by itself."""


@dataclass(frozen=True, kw_only=True)
class RunSwagConfig(SplitFiles, FineTuningConfig):
    """The options of a run for endings (SWAG)."""

    OF_FILES: ClassVar = ("encoding",)
    IN_A_MODEL: ClassVar = {"num_choices": bounded(int, at_least=1)}
    FILE_NAMES: ClassVar = {"train": "train.csv", "dev": "val.csv", "test": "test.csv"}

    data_dir: Path | None = option(
        None, "The folder with SWAG's train.csv, val.csv and test.csv.", resume=FREE
    )
    train_file: Path | None = option(
        None,
        "Contexts with endings to train on, in place of train.csv of data_dir: CSV with SWAG's "
        "columns, or JSON lines, plain or packed.",
        resume=FREE,  # its content is compared
    )
    dev_file: Path | None = option(None, "Examples to evaluate, as train_file.", resume=FREE)
    test_file: Path | None = option(
        None, "Examples to predict, as train_file; evaluated where they have labels.", resume=FREE
    )
    text_encoding: TextEncoding = nested(TextEncoding)

    @property
    def file_encoding(self) -> TextEncoding:
        """See `FineTuningConfig.file_encoding`."""
        return self.text_encoding

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names_files:
            raise UserError(
                "nothing says what to learn; give `data_dir`, the folder of train.csv, val.csv and "
                "test.csv, or `train_file`, `dev_file` and `test_file`."
            )
