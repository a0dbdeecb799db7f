"""The archive that GLUE's server takes: a zip file with one table of answers for each test set."""

import io
import logging
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import check_output, open_whole
from keras_bert_impl.options import REQUIRED, option
from pipelines.tables.lines import read_lines
from pipelines.tasks.labels.glue import find_task

_LOGGER = logging.getLogger(__name__)

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same answers make the same archive

ROWS: Mapping[str, int] = {
    "AX": 1104,
    "CoLA": 1063,
    "MNLI-m": 9796,
    "MNLI-mm": 9847,
    "MRPC": 1725,
    "QNLI": 5463,
    "QQP": 390965,
    "RTE": 3000,
    "SST-2": 1821,
    "STS-B": 1379,
    "WNLI": 146,
}
"""The test sets of a submission, and their rows."""


@dataclass(frozen=True, kw_only=True)
class SubmissionConfig:
    """The parts of an archive."""

    run_dir: tuple[str, ...] = option(
        REQUIRED,
        "Folders with files of answers (CoLA.tsv, MNLI-m.tsv, ...): output folders of "
        "run_classifier with do_predict, or a folder of such folders; separated by commas.",
    )
    output_file: Path = option(REQUIRED, "The archive to write, e.g. submission.zip.")


def write_submission_archive(config: SubmissionConfig) -> dict[str, Path]:
    """Checks the answers to GLUE's test sets and writes the archive; gives the files found."""
    found: dict[str, Path] = {}
    for folder in map(Path, config.run_dir):
        for path in sorted((*folder.glob("*.tsv"), *folder.glob("*/*.tsv"))):
            other = found.setdefault(path.stem, path) if path.stem in ROWS else path
            if not other.samefile(path):
                raise UserError(f"{path}: {other} is of the same test set; name one in `run_dir`.")
    if not found:
        raise UserError(
            f"`run_dir={','.join(config.run_dir)}`: holds none of {'.tsv, '.join(ROWS)}.tsv; run "
            "the tasks with `do_predict` first."
        )
    with open_whole(check_output(config.output_file), "wb") as file:
        packed = io.BytesIO()  # a device has no place to go back to
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(found):
                _check(name, found[name])
                entry = zipfile.ZipInfo(f"{name}.tsv", _EARLIEST)
                entry.external_attr = 0o644 << 16  # readable where it is unpacked
                archive.writestr(entry, found[name].read_bytes(), zipfile.ZIP_DEFLATED)
        file.write(packed.getvalue())
    return found


def _check(name: str, path: Path) -> None:
    """Holds a file against its task: its labels, and how many rows it has."""
    head, number = find_task(name.removesuffix("-mm").removesuffix("-m")).head_of, 1
    for number, line in read_lines(path):
        try:
            _, label = line.split("\t")
            if number == 1 and line != "index\tprediction":
                raise ValueError
            if number > 1:
                head.encode(label)
        except (ValueError, UserError) as error:
            raise UserError(
                f"{path}: line {number} is {shown(line)}, which is no answer here."
            ) from error
    if number - 1 != ROWS[name]:
        _LOGGER.warning("%s: has %d answers, not %d, GLUE's.", path, number - 1, ROWS[name])
