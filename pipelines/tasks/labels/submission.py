"""The archive that GLUE's server takes: a zip file with one table of answers for each test set."""

import io
import logging
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import check_output, open_whole, real_path
from keras_bert_impl.options import REQUIRED, option
from pipelines.fine_tuning.heads import RegressionHead
from pipelines.tables.lines import read_lines
from pipelines.tasks.labels.glue import find_task

_LOGGER = logging.getLogger(__name__)

_HEADER = "index\tprediction"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same answers make the same archive

ROWS: Mapping[str, int] = {
    "AX.tsv": 1104,
    "CoLA.tsv": 1063,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "MRPC.tsv": 1725,
    "QNLI.tsv": 5463,
    "QQP.tsv": 390965,
    "RTE.tsv": 3000,
    "SST-2.tsv": 1821,
    "STS-B.tsv": 1379,
    "WNLI.tsv": 146,
}
"""The files of a submission, with the rows of GLUE's test sets."""


@dataclass(frozen=True, kw_only=True)
class SubmissionConfig:
    """The parts of an archive."""

    run_dir: tuple[str, ...] = option(
        REQUIRED,
        "Folders with files of answers (CoLA.tsv, MNLI-m.tsv, ...): output folders of "
        "run_classifier with do_predict, or a folder of such folders; separated by commas.",
    )
    output_file: Path = option(REQUIRED, "The archive to write, e.g. submission.zip.")


@dataclass(frozen=True)
class Submission:
    """A written archive.

    Attributes:
        path: the archive.
        files: what it holds: each file's name and where it came from.
        missing: the files that GLUE's server also asks for.
    """

    path: Path
    files: Mapping[str, Path]
    missing: Sequence[str]


def write_submission_archive(config: SubmissionConfig) -> Submission:
    """Collects the answers to GLUE's test sets, checks them and writes the archive.

    Raises:
        UserError: there are no answers, two files are for one test set, or one is not what GLUE's
            server takes.
    """
    found = _find([Path(folder) for folder in config.run_dir])
    for name, path in found.items():
        _check(name, path)
    output = check_output(config.output_file)
    packed = io.BytesIO()  # a device has no place to go back to
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(found):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16  # readable where it is unpacked
            archive.writestr(entry, found[name].read_bytes())
    with open_whole(output, "wb") as file:
        file.write(packed.getvalue())
    return Submission(config.output_file, found, sorted(ROWS.keys() - found.keys()))


def _find(folders: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in _candidates(folders):
        if path.name in found:
            raise UserError(
                f"{path}: {found[path.name]} has answers to the same test set; name in `run_dir` "
                "the folder that shall count."
            )
        found[path.name] = path
    if not found:
        raise UserError(
            f"`run_dir={','.join(map(str, folders))}`: holds none of {', '.join(ROWS)}; run the "
            "tasks with `do_predict` first."
        )
    return found


def _candidates(folders: Sequence[Path]) -> Iterator[Path]:
    """The files of answers in the folders, and in the folders in them."""
    seen = set()
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder; check the path.")
        for inner in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
            for name in ROWS:
                path = inner / name
                if path.is_file() and real_path(path) not in seen:
                    seen.add(real_path(path))
                    yield path


def _check(name: str, path: Path) -> None:
    is_answer, number = _answers_of(name), 1
    lines = read_lines(path)
    if next(lines, None) != (1, _HEADER):
        raise UserError(
            f"{path}: line 1 is not 'index' and 'prediction' with a tab between them; make the "
            "file with run_classifier."
        )
    for number, line in lines:
        identifier, tab, answer = line.partition("\t")
        if not (identifier and tab and is_answer(answer)):
            raise UserError(
                f"{path}: line {number} is {shown(line)}, which is no answer to this test set; "
                "make "
                "the file with run_classifier."
            )
    if number - 1 != ROWS[name]:
        _LOGGER.warning(
            "%s: has %d answers, but GLUE's test set has %d examples.", path, number - 1, ROWS[name]
        )


def _answers_of(name: str) -> Callable[[str], bool]:
    """The answers that a file may hold."""
    head = find_task(name.removesuffix(".tsv").removesuffix("-mm").removesuffix("-m")).head_of
    if isinstance(head, RegressionHead):
        return _is_finite
    labels = set(head.labels)
    return lambda answer: answer in labels


def _is_finite(answer: str) -> bool:
    try:
        return math.isfinite(float(answer))
    except ValueError:
        return False
