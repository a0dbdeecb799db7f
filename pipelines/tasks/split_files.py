"""A file for each split: named one by one, or found in a folder under its usual name."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from keras_bert_impl.errors import UserError


class SplitFiles:
    """What options have in common that name a file for each split; they say what is in a file.

    Attributes:
        FILE_NAMES: what the files of "train", "dev" and "test" are called in the folder.
        data_dir: the folder.
        train_file: stands in place of the one in the folder, as do the others.
        dev_file: see `train_file`.
        test_file: see `train_file`.

    Example:
        >>> class Named(SplitFiles):
        ...     FILE_NAMES = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
        ...     data_dir, train_file, dev_file, test_file = None, None, Path("mine.txt"), None
        >>> Named().names_files, Named().file("dev").name, Named().file("test")
        (True, 'mine.txt', None)
    """

    FILE_NAMES: ClassVar[Mapping[str, str]]
    data_dir: Path | None
    train_file: Path | None
    dev_file: Path | None
    test_file: Path | None

    @property
    def names_files(self) -> bool:
        """Whether there is any file, or a folder."""
        return bool(self.data_dir or self.train_file or self.dev_file or self.test_file)

    def file(self, split: str) -> Path | None:
        """The file of a split ("train", "dev" or "test"); None where there is none.

        Raises:
            UserError: the folder is missing.
        """
        named = {"train": self.train_file, "dev": self.dev_file, "test": self.test_file}[split]
        if named is not None or self.data_dir is None:
            return named
        if not self.data_dir.is_dir():
            train = self.FILE_NAMES["train"]
            raise UserError(f"{self.data_dir}: there is no such folder; name that of {train}.")
        path = self.data_dir / self.FILE_NAMES[split]
        return path if path.exists() else None
