"""Options of a run that chooses endings, and its files: SWAG's columns, or JSON lines.

| form | context | endings | the right one |
|---|---|---|---|
| SWAG (CSV) | `sent1`, and `sent2`, with which endings begin | `ending0`, ... | `label`, from 0 |
| JSON lines | the same, or `context` | the same, or a list `endings` | the same |
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import FREE, bounded, nested, option
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.fine_tuning.options import FineTuningConfig, SplitFiles
from pipelines.tables.columns import NO_LABELS
from pipelines.tables.files import Record, TableFile, open_table

_LOGGER = logging.getLogger(__name__)

_ENDING = re.compile(r"endings?(\d+)")
_TEXTS = re.compile(rf"context|sent[12]|endings|{_ENDING.pattern}")
_IDENTIFIERS = ("id", "index", "fold-ind")
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_names_files("learn")


@dataclass(frozen=True, slots=True)
class Choice:
    """A context and the endings to choose from."""

    identifier: str
    context: str
    endings: tuple[str, ...]
    label: int | None  # the number of the right one, from 0
    line: int


def read_choices(
    path: Path, *, labelled: bool, num_choices: int | None = None, encoding: TextEncoding = UTF_8
) -> Iterator[Choice]:
    """Reads the examples of a file, all with `num_choices` endings, or as many as the first one.

    Their labels are read where they are `labelled`, each of them.
    """
    for number, record in enumerate(open_table(str(path), encoding=encoding).records()):
        choice = _choice(str(path), record, number, labelled)
        num_choices = num_choices or len(choice.endings)
        if len(choice.endings) != num_choices:
            raise UserError(
                f"{path}: line {record.line} has {len(choice.endings)} endings where others have "
                f"{num_choices}; give every example as many."
            )
        yield choice


def has_labels(path: Path, encoding: TextEncoding) -> bool:
    """Whether any example says which ending is right: then each must, see `read_choices`."""
    records = open_table(str(path), encoding=encoding).records()
    found = any(_label_of(one.values) is not None for one in records)
    if not found:
        _LOGGER.info("%s: has no labels; not evaluated.", path)
    return found


def _label_of(values: Mapping[str, Any]) -> str | None:
    """The label as text, of which pandas may have made a number with a point."""
    label = str(values.get("label")).strip()
    return None if label in NO_LABELS else label.removesuffix(".0")


def asked_of(file: TableFile, record: Record) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What a record asks a model, and the record's other columns."""
    choice = _choice(file.name, record, 0, labelled=False)
    others = {key: value for key, value in record.values.items() if not _TEXTS.fullmatch(key)}
    return {"context": choice.context, "endings": list(choice.endings)}, others


def _choice(path: str, record: Record, number: int, labelled: bool) -> Choice:
    values, where = record.values, f"{path}: line {record.line}"
    context: Any = values.get("context", values.get("sent1"))
    start = values.get("sent2") or ""
    for text, column in ((context, "'sent1' or 'context'"), (start, "'sent2'")):
        if not isinstance(text, str):
            raise UserError(
                f"{where} has no text in the column {column}, in front of the endings; correct it, "
                "or name a file with SWAG's columns."
            )
    endings = tuple(f"{start} {ending}".strip() for ending in _endings(values, where))
    name = next((str(x) for x in map(values.get, _IDENTIFIERS) if x not in (None, "")), str(number))
    if not labelled:
        return Choice(name, context, endings, None, record.line)
    label = _label_of(values)
    if label is None:
        raise UserError(f"{where} has no correct ending (column 'label'); fix or remove it.")
    if label not in map(str, range(len(endings))):
        raise UserError(
            f"{where}: the label {shown(values['label'])} is none of the endings 0 to "
            f"{len(endings) - 1}; fix it."
        )
    return Choice(name, context, endings, int(label), record.line)


def _endings(values: Mapping[str, Any], where: str) -> Sequence[str]:
    named = {int(one[1]): values[one[0]] for one in map(_ENDING.fullmatch, values) if one}
    if {*named} != {*range(len(named))}:
        raise UserError(f"{where}: its columns of endings are not ending0, ending1, ....")
    endings = values.get("endings", [named[number] for number in range(len(named))])
    if not isinstance(endings, list) or len(endings) < 2:
        raise UserError(
            f"{where} has no two endings; give the columns 'ending0', 'ending1', ... or, in JSON, "
            "a list 'endings'."
        )
    for number, ending in enumerate(endings):
        if not isinstance(ending, str) or not ending.strip():
            raise UserError(f"{where}: the ending {number} is empty; fix or remove the example.")
    return endings
