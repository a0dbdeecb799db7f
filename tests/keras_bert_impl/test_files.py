import errno
import fcntl
import os
import platform
import stat
import subprocess
import sys

import pytest

from keras_bert_impl import files
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import (
    check_output,
    check_parts,
    check_plain,
    is_there,
    make_folder,
    open_input,
    open_whole,
    owned,
    text_lines,
    whole_files,
    whole_folder,
    writing,
)
from tests.support.pretraining_run import ROOT


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "out.txt"
    with open_whole(target) as file:
        file.write("first half")
        assert not target.exists()
    assert target.read_text() == "first half"


def test_an_error_while_writing_leaves_nothing_and_keeps_the_old_file(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError), open_whole(target) as file:
        file.writelines(["new", "\ud800"])
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["out.txt"]


def test_several_files_appear_together_or_not_at_all(tmp_path):
    with whole_files(tmp_path / "model", "data", "index") as aside:
        for name in ("index", "data"):
            (aside / name).write_text("old")
        assert not (tmp_path / "model" / "data").exists()
    aside_of = whole_files(tmp_path / "model", "data", "index")
    with pytest.raises(UnicodeEncodeError), aside_of as aside:
        (aside / "data").write_text("new \ud800")
    assert names_in(tmp_path / "model") == ["data", "index"]
    assert (tmp_path / "model" / "data").read_text() == "old"


def test_a_complete_folder_replaces_the_old_one(tmp_path):
    target = tmp_path / "model"
    for content in ("old", "new"):
        with whole_folder(target) as folder:
            (folder / f"{content}.txt").write_text(content)
    assert names_in(target) == ["new.txt"]
    assert names_in(tmp_path) == ["model"]


def test_what_is_replaced_keeps_its_permissions(tmp_path):
    model, file = tmp_path / "model", tmp_path / "out.txt"
    for mode in (0o700, 0o711):
        with whole_folder(model):
            pass
        with open_whole(file) as out:
            out.write("x")
        with whole_files(tmp_path, "data") as aside:
            (aside / "data").touch()
        paths = (model, file, tmp_path / "data")
        if mode == 0o711:  # each was there with the first
            assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o700}
        for path in paths:
            path.chmod(mode)


def test_what_a_killed_process_was_writing_is_removed_by_the_next(tmp_path):
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    machine = platform.node().replace(".", "-")
    for process in (dead.stdout.strip(), os.getppid()):
        (tmp_path / f".out.txt.{machine}.{process}.incomplete").write_text("half")
    (tmp_path / f".model.{machine}.{dead.stdout.strip()}.incomplete").mkdir()
    (tmp_path / f".out.txt.elsewhere.{dead.stdout.strip()}.incomplete").write_text("not ours")
    with open_whole(tmp_path / "out.txt") as file:
        file.write("whole")
    with whole_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("whole")
    assert sorted(path.name.replace(machine, "HERE") for path in tmp_path.iterdir()) == [
        f".out.txt.HERE.{os.getppid()}.incomplete",
        f".out.txt.elsewhere.{dead.stdout.strip()}.incomplete",
        "model",
        "out.txt",
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")  # noqa: PTH110
def test_a_process_that_was_killed_and_not_waited_for_does_not_live():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert files.lives(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not files.lives(process.pid)


def test_a_folder_that_had_stepped_aside_when_its_process_was_killed_comes_back(tmp_path):
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    machine = platform.node().replace(".", "-")
    aside = tmp_path / f".model.{machine}.{dead.stdout.strip()}.replaced"
    aside.mkdir()
    (aside / "weights").write_text("older")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "model"):
        raise RuntimeError
    assert names_in(tmp_path) == ["model"]
    assert (tmp_path / "model" / "weights").read_text() == "older"


def test_a_name_that_cannot_be_a_folder_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"file/out: this folder cannot be written to"):
        make_folder(tmp_path / "file" / "out")


@pytest.mark.parametrize("use", [make_folder, check_output, lambda x: whole_folder(x).__enter__()])
@pytest.mark.parametrize("address", ["gs://bucket", "hdfs://host/a/b"])
def test_an_address_is_no_folder_of_this_machine(tmp_path, monkeypatch, use, address):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^(gs|hdfs):.*: is an address; name a folder of this"):
        use(address)
    assert names_in(tmp_path) == []


def test_a_named_pipe_that_nobody_reads_any_more_is_not_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def write_to_nobody():
        with open_whole(tmp_path / "pipe") as file:
            os.close(reader)
            file.write("x")

    with pytest.raises(UserError, match=r"pipe: cannot be written \(Broken pipe\)"):
        write_to_nobody()


def test_a_broken_pipe_of_our_own_output_is_no_fault_of_a_file(tmp_path):
    for name in (tmp_path / "out.txt", "/dev/stdout"):
        with pytest.raises(BrokenPipeError), writing(name):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(UserError, match="cannot be written to"):
        make_folder(tmp_path / "out")


def test_a_write_that_fails_is_one_sentence_and_leaves_nothing(tmp_path):
    def write_to_a_full_disk():
        with open_whole(tmp_path / "out.txt"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UserError, match=r"out\.txt: cannot be written \(No space left"):
        write_to_a_full_disk()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.touch(), "is empty"),
    ],
)
def test_an_unusable_input_is_named(tmp_path, make, sentence):
    make(tmp_path / "input")
    with pytest.raises(UserError, match=f"input: {sentence}"):
        open_input(tmp_path / "input")


@pytest.mark.parametrize("use", [open_input, is_there])
def test_a_path_that_cannot_be_followed_is_a_sentence(tmp_path, use):
    """As in a folder that may not be searched; a name that is too long fails so for root too."""
    with pytest.raises(UserError, match=r"x: cannot be read \(File name too long\)"):
        use(tmp_path / ("x" * 300))


def lines_of(tmp_path, content):
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    return list(text_lines(path))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\n\r\ntwo\r\n", ["one", "", "two"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        (b"\xef\xbb\xbf", []),
        ("one\u2028still one\x0bas well\n".encode(), ["one\u2028still one\x0bas well"]),
    ],
)
def test_only_a_line_feed_ends_a_line(tmp_path, content, lines):
    assert lines_of(tmp_path, content) == lines


def test_a_line_in_another_encoding_is_named(tmp_path):
    with pytest.raises(
        UserError, match=r"lines\.txt: line 2 is not UTF-8; convert the file \(icon"
    ):
        lines_of(tmp_path, b"one\nna\xefve\n")


@pytest.mark.parametrize("check", [lambda path: check_parts(path / "model.ckpt"), None])
def test_what_a_foreign_reader_would_wait_for_is_refused_before(tmp_path, check):
    (tmp_path / "model.ckpt.index").write_text("x")
    os.mkfifo(tmp_path / "model.ckpt.data-00000-of-00001")
    with pytest.raises(UserError, match=r"data-00000-of-00001: is a pipe or a device, but a"):
        check(tmp_path) if check else check_plain(tmp_path.rglob("*"))


def test_a_line_without_an_end_is_refused_before_the_memory_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_LINE_BYTES", 5000)
    (tmp_path / "x.txt").write_bytes(b"one\n" + b"x" * 4999 + b"\n" + b"x" * 5001)
    lines = text_lines(tmp_path / "x.txt")
    assert [len(next(lines)), len(next(lines))] == [3, 4999]
    with pytest.raises(UserError, match=r"x\.txt: line 3 has more than"):
        next(lines)


HOLD = """
import sys
from pathlib import Path
from keras_bert_impl.files import owned
with owned(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_refused_until_the_first_one_ends_in_good_order(tmp_path, holder):
    with pytest.raises(UserError, match="busy here"), owned(tmp_path / "lock", "busy here"):
        pass
    holder.communicate("")
    with owned(tmp_path / "lock", "busy"):
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


def test_a_lock_file_that_was_removed_between_opening_and_locking_does_not_count(
    tmp_path, monkeypatch
):
    """Otherwise two processes would hold two different files of the same name."""
    removed, flock = [], fcntl.flock

    def remove_first(descriptor, operation):
        if not removed:
            removed.append((tmp_path / "lock").unlink())
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with owned(tmp_path / "lock", "busy"):
        assert removed
        assert (tmp_path / "lock").exists()
        with pytest.raises(UserError), owned(tmp_path / "lock", "busy"):
            pass


def test_a_pipe_in_the_place_of_a_lock_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "lock")
    wanted = pytest.raises(UserError, match="lock: cannot be opened to lock it")
    with wanted, owned(tmp_path / "lock", "busy"):
        pass
