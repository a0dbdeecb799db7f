"""What a run that chooses endings is told."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, option
from pipelines.runs.fine_tuning_config import FineTuningConfig

_NAMES = {"train": "train.csv", "dev": "val.csv", "test": "test.csv"}


@dataclass(frozen=True, kw_only=True)
class RunSwagConfig(FineTuningConfig):
    """What a run for endings (SWAG) is told.

    Raises:
        UserError: a value out of range, or no file is named.
    """

    data_dir: Path | None = option(
        None, "The folder with SWAG's train.csv, val.csv and test.csv.", resume=FREE
    )
    train_file: Path | None = option(
        None,
        "Contexts with endings to train on, in place of train.csv of data_dir: CSV with SWAG's "
        "columns, or JSON lines, plain or packed.",
        resume=FREE,  # its content is compared
    )
    dev_file: Path | None = option(None, "Examples to score, as train_file.", resume=FREE)
    test_file: Path | None = option(
        None, "Examples to answer, as train_file; scored where they have labels.", resume=FREE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.data_dir or self.train_file or self.dev_file or self.test_file):
            raise UserError(
                "nothing says what to learn; give `data_dir`, the folder of train.csv, val.csv and "
                "test.csv, or `train_file`, `dev_file` and `test_file`."
            )

    def file(self, split: str) -> Path | None:
        """The file of a split ("train", "dev" or "test"); None where there is none.

        Raises:
            UserError: the folder is missing.
        """
        named = {"train": self.train_file, "dev": self.dev_file, "test": self.test_file}[split]
        if named is not None or self.data_dir is None:
            return named
        if not self.data_dir.is_dir():
            raise UserError(f"{self.data_dir}: there is no such folder; name that of train.csv.")
        path = self.data_dir / _NAMES[split]
        return path if path.exists() else None
