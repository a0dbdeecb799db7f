"""Files: what looks whole is whole (written aside, then renamed), and faults are one sentence.

What a user names for output may be a link, and is `followed`. Inside a folder, which may have come
with links in it, none is: a new file or folder takes a link's place, and a folder that is written
into must be none (`without_links`).
"""

import codecs
import contextlib
import errno
import fcntl
import glob
import hashlib
import io
import os
import platform
import re
import resource
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.errors import UserError, reason_of, refusal

StrPath = str | os.PathLike[str]
"""What a user may name a file by."""

MOST_LINE_BYTES = 32 << 20
"""The longest line of text that is read; documents of the field have some megabytes a line."""

appeared: list[Path] = []
"""The files and folders that this process has finished and given their names."""

_OTHER_FILES = 256  # TensorFlow's threads, events, checkpoints
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
# Such as gs://, of which a path keeps one slash.
_ADDRESS = re.compile(r"(gs|s3[an]?|hdfs|abfss?|wasbs?|https?|ftp|file):(/|$)")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self)/fd/(\d+)")


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a pipe, a device or a socket: neither file nor folder.

    A reader that opens one like a file waits for ever or never comes to an end, and a rename over
    one replaces it.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a name with NUL, too
    except (OSError, ValueError):  # whoever opens it tells of that
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def own_descriptor(path: Path) -> int | None:
    """The number of an open file of this process that a name stands for, as `/dev/stdout` does."""
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else _STANDARD.get(str(path))


class _Stream(io.FileIO):
    """What comes out of a pipe; a reading gives all that was asked for, but for the last one."""

    _position = 0

    def readinto(self, buffer: Any) -> int:
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and (count := super().readinto(view[filled:])):
            filled += count
        self._position += filled
        return filled

    def tell(self) -> int:
        return self._position


def aside_of(path: Path, ending: str = "incomplete") -> Path:
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
        dead = process == str(os.getpid()) or (process.isdecimal() and not lives(int(process)))
        if dead:
            yield left


def _machine() -> str:
    return platform.node().replace(".", "-")


def lives(process: int) -> bool:
    """Whether a process of this machine lives."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (OverflowError, ProcessLookupError):
        return False
    except OSError:
        return True  # another user's, or on a system without /proc
    # A zombie was killed but not yet reaped; in a container without an init process it never is.
    return status.rpartition(")")[2].split()[0] not in "ZX"


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def allow_open_files(count: int) -> None:
    """Lets this process keep so many more files open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = soft + count + _OTHER_FILES
        wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Creates the folder `path` and its parents."""
    folder = Path(path)
    if _ADDRESS.match(str(folder)):
        raise UserError(f"{folder}: is an address; name a folder of this machine (mount a bucket).")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: this folder cannot be written to ({refusal(error) or error}); name another "
            "one or change its permissions."
        ) from error
    return folder


def check_output(path: str | os.PathLike[str], *, grows: bool = False) -> Path:
    """Checks before the work that a file can be written after it; gives it `followed`."""
    named = Path(path)
    with writing(named):
        final = followed(named)
        if final.is_dir():
            raise UserError(f"{named}: is a folder; name a file in it.")
        if grows:
            check_plain([named])
        if not is_special(named):
            place = real_path(final) if final.is_symlink() else final
            make_folder(place.parent)
            aside = aside_of(place)
            aside.touch(exist_ok=False)
            aside.unlink(missing_ok=True)
    return final


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside the block what the system refuses is reported as a fault of writing `path`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = refusal(error)
        if isinstance(error, BrokenPipeError) and own_descriptor(Path(path)) is None:
            reason = reason_of(error) if is_special(path) else None
        if reason is None:
            raise
        raise not_written(path, reason) from error


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, links followed; one of links that lead in a circle stays as it is."""
    return Path(os.path.realpath(path))


def followed(path: str | os.PathLike[str]) -> Path:
    """Where an output is written that a user names: a link stays, what it leads to is replaced."""
    named = Path(path)
    return real_path(named) if named.is_symlink() and own_descriptor(named) is None else named


def without_links(path: Path, names: int = 1) -> Path:
    """A path inside a user's folder, if none of its last `names` is a link."""
    for part in (path, *path.parents[: names - 1]):
        if part.is_symlink():
            raise UserError(
                f"{part}: is a link, through which nothing is written, because it may have come "
                "with its folder; move here what it leads to, or remove it."
            )
    return path


def _keep_mode(old: Path, new: Path) -> None:
    """Gives what replaces a file or a folder, but no link, its permissions."""
    if old.exists() and not old.is_symlink():
        mode = stat.S_IMODE(old.stat().st_mode)
        new.chmod(mode if new.is_dir() else mode & 0o777)  # no new content runs as another user


@contextlib.contextmanager
def open_whole(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO]:
    r"""Opens a file that appears under its name only when the block ends without an error.

    Text is written as UTF-8 with `\n` line ends. The file is flushed to disk before the rename.
    A link of that name is replaced, see `followed`; a pipe or a device is written to as it is. The
    file's folder must exist.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with open_whole(target) as file:
        ...     _ = file.write("1 2 3")
        >>> target.read_text()
        '1 2 3'
    """
    named = Path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with writing(named):
        if (own := own_descriptor(named)) is not None:
            # Not opened anew: what else is printed there would begin at its beginning again.
            with os.fdopen(os.dup(own), mode, **text) as file:  # type: ignore[call-overload]
                yield file
            return
        if is_special(named) and not named.is_symlink():
            with named.open(mode, **text) as file:  # type: ignore[call-overload]
                yield file
            return
        if named.is_dir() and not named.is_symlink():
            raise UserError(f"{named}: is a folder; name a file in it.")
        aside = aside_of(named)
        try:
            with aside.open(mode.replace("w", "x"), **text) as file:  # type: ignore[call-overload]
                try:
                    yield file
                except BaseException:
                    with contextlib.suppress(OSError):  # it would hide what came first
                        file.close()
                    raise
                flush(file)
            _keep_mode(named, aside)
            aside.replace(named)
            appeared.append(named)
        finally:
            with contextlib.suppress(OSError):  # it would hide why the file cannot be written
                aside.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike[str], *, replaces: bool = True) -> Iterator[Path]:
    """Gives a folder to fill that appears under its name only when the block ends without an error.

    An older folder of that name is replaced, and so is a link, see `followed`. Where nothing is
    replaced, an empty one may be there, but none that another process has filled meanwhile.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "model"
        >>> with whole_folder(target) as folder:
        ...     _ = (folder / "config.json").write_text("{}")
        >>> [child.name for child in target.iterdir()]
        ['config.json']
    """
    final = Path(path)
    with writing(final):
        if final.exists() and not final.is_dir():
            raise UserError(f"{final}: is a file, but a folder is written; name another place.")
        make_folder(final.parent)
        for older in _left_by_the_dead(final, "replaced"):
            # Its process was killed when the older folder had stepped aside and no other was there.
            if not final.exists():
                older.rename(final)
                replaces = True
        aside = aside_of(final)
        aside.mkdir()
        try:
            yield aside
            _flush(aside)
            if replaces and is_named(final):
                # A folder cannot be renamed over a full one: the old one steps aside first.
                _keep_mode(final, aside)
                old = aside_of(final, "replaced")
                final.rename(old)
                aside.rename(final)
                remove(old)
            else:
                try:
                    aside.rename(final)
                except OSError as error:
                    if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                        raise
                    raise UserError(f"{final}: is there already; name a new folder.") from error
            appeared.append(final)
            _flush_entries(final.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def whole_files(folder: str | os.PathLike[str], *names: str) -> Iterator[Path]:
    """Gives a folder to write several files in; they appear in `folder` when the block ends."""
    final = make_folder(folder)
    with writing(final / names[-1]):
        check_plain(final / name for name in names)
        aside = aside_of(final / names[-1])
        aside.mkdir()
        try:
            yield aside
            _flush(aside)
            for name in names:
                _keep_mode(final / name, aside / name)
                (aside / name).replace(final / name)
                appeared.append(final / name)
            _flush_entries(final)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def owned(lock_file: Path, busy: str) -> Iterator[None]:
    """Inside the block no other process is inside a block with this lock file.

    A process that is killed lets go. The file is made here, in a folder that exists, and removed at
    the end. On a file system without locks no process is kept out.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / ".lock"
        >>> with owned(file, "Another run is at work here."):
        ...     file.exists()
        True
        >>> file.exists()
        False
    """
    with contextlib.ExitStack() as stack:
        while True:
            try:
                # Neither through a link, nor waiting for the other end of a pipe.
                flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                file = os.open(lock_file, flags, 0o666)
            except OSError as error:
                why = f"cannot be opened to lock it ({error.strerror}); remove it"
                raise UserError(f"{lock_file}: {why}.") from error
            stack.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                there = os.path.samestat(os.fstat(file), lock_file.stat())
            except BlockingIOError as error:
                raise UserError(busy) from error
            except FileNotFoundError:
                there = False
            except OSError:
                break
            if there:
                break
            # The process before removed the file after it was opened here.
        stack.callback(lock_file.unlink, missing_ok=True)
        yield


def not_written(path: str | os.PathLike[str], reason: str | None) -> UserError:
    """The one sentence for a result that cannot be written."""
    remedy = "free some space or name another place"
    return UserError(f"{path}: cannot be written ({reason}); {remedy}.")


def flush(file: IO) -> None:
    """Waits until what was written is on the disk, if it is a file on a disk."""
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


def write_all(file: io.FileIO, content: bytes) -> None:
    """Writes all of it to an unbuffered file, and waits until it is on the disk."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    flush(file)


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
    """Whether there is such a file or folder."""
    try:
        return Path(path).exists()
    except OSError as error:
        raise _unreadable(Path(path), error) from error


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be read ({error.strerror}); check the path and permissions.")


def check_file(path: str | os.PathLike[str]) -> Path:
    """Checks that a path is a plain file with content, before a foreign reader opens it."""
    open_input(path).close()
    return Path(path)


def is_named(path: Path) -> bool:
    """Whether there is such a file, or a link to nowhere: whoever reads it tells of that."""
    return is_there(path) or path.is_symlink()


def check_plain(paths: Iterable[Path]) -> None:
    """Refuses pipes and devices among files that a foreign reader opens itself, and waits for."""
    for path in filter(is_special, paths):
        raise UserError(
            f"{path}: is a pipe or a device, but a file is needed; write it to a file and name "
            "that."
        )


def check_parts(prefix: str | os.PathLike[str]) -> None:
    """As `check_plain`, for the files of a TensorFlow checkpoint: a prefix, a dot and more."""
    path = Path(prefix)
    check_plain(path.parent.glob(f"{glob.escape(path.name)}.*"))


def open_input(
    path: str | os.PathLike[str], *, stream: bool = False, may_be_empty: bool = False
) -> IO[bytes]:
    """Opens an existing, non-empty file for reading bytes; perhaps a pipe, read as it comes."""
    file = Path(path)
    if not is_there(file):
        if file.is_symlink():
            raise UserError(f"{file}: leads to {file.readlink()}, which is not there; fix it.")
        raise UserError(f"{file}: no such file; check the path.")
    if file.is_dir():
        raise UserError(f"{file}: is a folder, but a file is needed; name a file in it.")
    if not stream:
        check_plain([file])
    try:
        opened = io.BufferedReader(_Stream(file)) if is_special(file) else file.open("rb")
        if (own := own_descriptor(file)) is not None and opened.seekable():
            opened.seek(os.lseek(own, 0, os.SEEK_CUR))  # who opened it may have read some of it
        empty = not opened.peek(1)
    except OSError as error:
        raise _unreadable(file, error) from error
    if empty and not may_be_empty:
        opened.close()
        raise UserError(f"{file}: is empty (0 bytes); name a file with content.")
    return opened


def read_small(
    path: str | os.PathLike[str], mebibytes: int, needs: str, *, stream_or_empty: bool = False
) -> bytes:
    """The bytes of a file of so many mebibytes at most.

    `needs` ends the message about a larger one: "no vocabulary needs", say, and what to do.
    """
    most = mebibytes << 20
    with open_input(path, stream=stream_or_empty, may_be_empty=stream_or_empty) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path}: has more than {mebibytes} MiB, which {needs}.")
    return content


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, hexadecimal."""
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def not_utf8(path: str | os.PathLike[str], where: str) -> UserError:
    """The one sentence for a text file in another encoding."""
    return UserError(
        f"{path}: {where} is not UTF-8; convert the file (iconv -f ITS_ENCODING -t UTF-8)."
    )


def line_too_long(path: str | os.PathLike[str], line: int) -> UserError:
    """The one sentence for a line that no memory should be asked to hold."""
    most = f"more than {MOST_LINE_BYTES >> 20} MiB, the longest that is read"
    return UserError(f"{path}: line {line} has {most}; cut it into several lines.")


def text_lines(path: str | os.PathLike[str], *, stream: bool = False) -> Iterator[str]:
    r"""The lines of a UTF-8 file, one after the other, without their ends.

    Only `\n` ends a line (`str.splitlines` would also cut at characters inside a sentence); `\r` in
    front of it and a byte-order mark at the file's beginning are left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_bytes(b"one\r\n\nthree")
        >>> list(text_lines(path))
        ['one', '', 'three']
    """
    number = 0
    with open_input(path, stream=stream) as file:
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                raise line_too_long(path, number)
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
                if not line:
                    return  # a mark alone
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise not_utf8(path, f"line {number}") from error
