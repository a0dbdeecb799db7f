"""The digests of an export's files: what is damaged, or of another export, is not answered with."""

import logging
from collections.abc import Collection
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, is_named, is_there, read_small

DIGESTS_FILE = "SHA256SUMS"
"""A line for each file, as `sha256sum` writes and checks them."""

_log = logging.getLogger(__name__)


def write_digests(folder: Path) -> None:
    """Notes the digest of every file of an export; the last thing that is written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_sha256(file)}  {file.relative_to(folder).as_posix()}\n" for file in files]
    (folder / DIGESTS_FILE).write_bytes("".join(lines).encode())


def check_digests(folder: Path, needed: Collection[str]) -> None:
    """Holds the files of an export against their digests, as its client does by itself."""
    if not is_named(folder / DIGESTS_FILE):
        lost = "has no SHA256SUMS, by which damaged files and those of another export are known"
        _log.warning("%s: %s; export it again.", folder, lost)
        return
    lines = read_small(folder / DIGESTS_FILE, 1, "no such file needs; export it again").splitlines()
    parts = (line.decode("utf-8", "replace").partition("  ") for line in lines)
    noted = {name: digest for digest, _, name in parts}
    for name in sorted({*needed, *noted} - {""}):
        if (name in needed or is_there(folder / name)) and (
            file_sha256(folder / name) != noted.get(name)
        ):
            fault = f"is not the file that {DIGESTS_FILE} is about"
            raise UserError(f"{folder / name}: {fault}; copy or export the model again.")
