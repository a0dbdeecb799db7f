"""Cases that once failed, kept as what was spoiled rather than as numbers of the draws.

A case is a small JSON file in `corpus/`: the kind, what reads it, and the spoiled file's content
(packed, as base64), or what stands in its place.
"""

import base64
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("corpus")
_MOST = 12_000  # characters of a case; larger ones are made small by hand, or left out


def keep(case: Any, folder: Path = FOLDER) -> Path | None:
    """Keeps a case as it stands; None where it is too large."""
    values: dict[str, Any] = {"kind": case.kind.name, "outcome": case.judged.outcome}
    values |= {"reader": case.reader_name, "spoiled": case.spoiled, "words": case.words}
    values |= _state(case.folder / case.spoiled)
    text = json.dumps(values, indent=1)
    if len(text) > _MOST:
        return None
    folder.mkdir(exist_ok=True)
    path = folder / f"{case.name.replace(':', '-')}-{zlib.crc32(text.encode()):08x}.json"
    path.write_text(text + "\n")
    return path


def _state(path):
    if path.is_symlink():
        return {"link": str(path.readlink())}
    if path.is_dir():
        return {"folder": True}
    if not path.exists():
        return {"gone": True}
    if path.stat().st_size > 1 << 24:
        return {"holes": path.stat().st_size}
    return {"content": base64.b64encode(zlib.compress(path.read_bytes(), 9)).decode()}


def kept(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """All kept cases by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def put(values: dict[str, Any], path: Path) -> None:
    """Makes of a valid file what was kept."""
    if "holes" in values:
        os.truncate(path, values["holes"])
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif "content" not in values:
        path.unlink(missing_ok=True)
    if "link" in values:
        path.symlink_to(values["link"])
    elif "folder" in values:
        path.mkdir()
    elif "content" in values:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(base64.b64decode(values["content"])))
