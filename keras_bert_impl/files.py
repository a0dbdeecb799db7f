"""Files: what looks whole is whole (written aside, then renamed), and faults are one sentence."""

import codecs
import contextlib
import glob
import hashlib
import os
import platform
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from keras_bert_impl.errors import UserError

appeared: list[Path] = []
"""The files and folders that this process has finished and given their names."""


def _aside(path: Path, ending: str = "incomplete") -> Path:
    """The name of `path` until it is complete; in the same folder, so that renaming is atomic.

    What killed processes of this machine left under such names is removed.
    """
    for left in _left_by_the_dead(path, ending):
        remove(left)
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.{ending}")


def _left_by_the_dead(path: Path, ending: str) -> Iterator[Path]:
    for left in path.parent.glob(f".{glob.escape(path.name)}.{_machine()}.*.{ending}"):
        process = left.name.split(".")[-2]
        # In a container every process may have the number of the one that was killed before it.
        dead = process == str(os.getpid()) or (process.isdecimal() and not _lives(int(process)))
        if dead:
            yield left


def _machine() -> str:
    return platform.node().replace(".", "-")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OverflowError:
        return False
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Creates the folder `path` and its parents.

    Raises:
        UserError: the folder cannot be made or cannot be written to.

    Example:
        >>> import tempfile
        >>> make_folder(tempfile.mkdtemp()).is_dir()
        True
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In containers two processes that share the folder may have the same number.
        probe = folder / f".writable.{_machine()}.{os.getpid()}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: this folder cannot be written to ({error.strerror}); name another one or "
            "change its permissions."
        ) from error
    return folder


@contextlib.contextmanager
def no_folder_left(path: str | os.PathLike[str]) -> Iterator[None]:
    """After the block there is no empty folder `path`, or parent of it, that was not there before.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with no_folder_left(folder / "a" / "b"):
        ...     _ = make_folder(folder / "a" / "b")
        >>> list(folder.iterdir())
        []
    """
    new = [folder for folder in (Path(path), *Path(path).parents) if not folder.exists()]
    try:
        yield
    finally:
        for folder in new:
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()


@contextlib.contextmanager
def open_whole(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO]:
    r"""Opens a file that appears under its name only when the block ends without an error.

    Text is written as UTF-8 with `\n` line ends. The file is flushed to disk before the rename.

    Args:
        path: the file's final name; its folder must exist.
        mode: "w" or "wb".

    Raises:
        UserError: the file cannot be written (permissions, disk full).

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with open_whole(target) as file:
        ...     _ = file.write("1 2 3")
        >>> target.read_text()
        '1 2 3'
    """
    final = Path(path)
    aside = _aside(final)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with aside.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(final)
        appeared.append(final)
    except OSError as error:
        raise not_written(final, error.strerror) from error
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a folder to fill that appears under its name only when the block ends without an error.

    An older folder of that name is replaced.

    Raises:
        UserError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "model"
        >>> with whole_folder(target) as folder:
        ...     _ = (folder / "config.json").write_text("{}")
        >>> [child.name for child in target.iterdir()]
        ['config.json']
    """
    final = Path(path)
    make_folder(final.parent)
    for older in _left_by_the_dead(final, "replaced"):
        # Its process was killed when the older folder had stepped aside and no other stood there.
        if not final.exists():
            older.rename(final)
    aside = _aside(final)
    make_folder(aside)
    try:
        yield aside
        _flush(aside)
        if final.exists():
            # A folder cannot be renamed over a full one: the old one steps aside first.
            old = _aside(final, "replaced")
            final.rename(old)
            aside.rename(final)
            shutil.rmtree(old, ignore_errors=True)
        else:
            aside.rename(final)
        appeared.append(final)
        _flush_entries(final.parent)
    except OSError as error:
        raise not_written(final, error.strerror) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def whole_files(folder: str | os.PathLike[str], *names: str) -> Iterator[Path]:
    """Gives a folder to write several files in; they appear in `folder` when the block ends.

    Args:
        folder: where they go.
        names: the files in the order in which they appear: the one that makes the others whole
            comes last.

    Raises:
        UserError: they cannot be written.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp())
        >>> with whole_files(target, "data", "index") as aside:
        ...     for name in ("data", "index"):
        ...         _ = (aside / name).write_text(name)
        >>> sorted(child.name for child in target.iterdir())
        ['data', 'index']
    """
    final = make_folder(folder)
    aside = _aside(final / names[-1])
    make_folder(aside)
    try:
        yield aside
        _flush(aside)
        for name in names:
            (aside / name).replace(final / name)
            appeared.append(final / name)
        _flush_entries(final)
    except OSError as error:
        raise not_written(final / names[-1], error.strerror) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def not_written(path: str | os.PathLike[str], reason: str | None) -> UserError:
    """The one sentence for a result that cannot be written.

    Example:
        >>> print(not_written("model", "No space left on device"))
        model: cannot be written (No space left on device); free some space or name another place.
    """
    remedy = "free some space or name another place"
    return UserError(f"{path}: cannot be written ({reason}); {remedy}.")


def _flush(folder: Path) -> None:
    """Waits until all that a folder holds is on the disk: a rename may get there before it."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            _flush_entries(path)
        elif path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _flush_entries(folder: Path) -> None:
    """Waits until a folder's list of names is on the disk, where the file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file or folder.

    Raises:
        UserError: that cannot be known: a folder on the way to it may not be searched, say.

    Example:
        >>> is_there("/no/such/file")
        False
    """
    try:
        return Path(path).exists()
    except OSError as error:
        raise _unreadable(Path(path), error) from error


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be read ({error.strerror}); check the path and permissions.")


def check_file(path: str | os.PathLike[str]) -> Path:
    """Checks that a path is a plain file with content, before a foreign reader opens it.

    Raises:
        UserError: it does not exist, cannot be read, is empty, or is a folder, a pipe, a socket or
            a device, at which a reader would wait for ever or never come to an end.

    Example:
        >>> check_file("/dev/zero")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: /dev/zero: is a device, but a file is needed; name a file.
    """
    open_input(path).close()
    return Path(path)


def open_input(path: str | os.PathLike[str]) -> IO[bytes]:
    """Opens an existing, non-empty file for reading bytes.

    Raises:
        UserError: it does not exist, cannot be read, is empty, or is no plain file (a folder, a
            pipe, a socket, a device).

    Example:
        >>> open_input("/no/such/file")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: /no/such/file: no such file; check the path.
    """
    file = Path(path)
    if not is_there(file):
        raise UserError(f"{file}: no such file; check the path.")
    if file.is_dir():
        raise UserError(f"{file}: is a folder, but a file is needed; name a file in it.")
    try:
        # Opening a pipe waits for its writer, unless it is told not to.
        opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115
    except OSError as error:
        raise _unreadable(file, error) from error
    status = os.fstat(opened.fileno())
    kind = _SPECIAL.get(stat.S_IFMT(status.st_mode))
    if kind is None and status.st_size > 0:
        return opened
    opened.close()
    if kind is not None:
        raise UserError(f"{file}: is a {kind}, but a file is needed; name a file.")
    raise UserError(f"{file}: is empty (0 bytes); name a file with content.")


_SPECIAL = {
    stat.S_IFIFO: "pipe",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFSOCK: "socket",
}


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, hexadecimal.

    Raises:
        UserError: it does not exist, is a folder, cannot be read or is empty.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "x"
        >>> _ = path.write_bytes(b"abc")
        >>> file_sha256(path)[:8]
        'ba7816bf'
    """
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def not_utf8(path: str | os.PathLike[str], where: str) -> UserError:
    """The one sentence for a text file in another encoding.

    Example:
        >>> print(not_utf8("old.txt", "line 3"))
        old.txt: line 3 is not UTF-8; convert the file (iconv -f ITS_ENCODING -t UTF-8).
    """
    return UserError(
        f"{path}: {where} is not UTF-8; convert the file (iconv -f ITS_ENCODING -t UTF-8)."
    )


def text_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    r"""The lines of a UTF-8 file, one after the other, without their ends.

    Only `\n` ends a line (`str.splitlines` would also cut at characters inside a sentence); `\r` in
    front of it and a byte-order mark at the file's beginning are left out.

    Raises:
        UserError: the file is missing, empty or not UTF-8.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_bytes(b"one\r\n\nthree")
        >>> list(text_lines(path))
        ['one', '', 'three']
    """
    with open_input(path) as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise not_utf8(path, f"line {number}") from error
