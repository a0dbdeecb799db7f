"""What one run compiles, the next one finds: whole, made for this machine, and nothing else."""

import atexit
import errno
import functools
import os
import platform
import re
import shutil
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest

from keras_bert_impl import kept_programs
from keras_bert_impl.kept_programs import keep_programs


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Begins a run, as if TensorFlow were not imported; gives its folder, and what ends it."""
    ends = []
    monkeypatch.setattr(atexit, "register", lambda *call: ends.append(call))
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "my cache"))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")

    def begin():
        monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
        keep_programs()
        folder = re.findall('directory="(.*?)"', os.environ["TF_XLA_FLAGS"])[0]
        return Path(folder), functools.partial(*ends[-1])

    return begin


def test_a_run_finds_what_the_run_before_compiled(runs, tmp_path):
    folder, end = runs()
    (folder / "a.pb").write_bytes(b"machine code")
    (folder / "b.pb.tmp").write_bytes(b"half of it")
    end()
    assert not folder.exists()
    folder, end = runs()
    assert {path.name: path.read_bytes() for path in folder.glob("*.pb*")} == {
        "a.pb": b"machine code"
    }
    (folder / "c.pb").write_bytes(b"more")
    end()
    assert len(list((tmp_path / "my cache" / "programs").iterdir())) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kept, _: kept.write_bytes(kept.read_bytes()[:-1]),
        lambda kept, _: kept.write_bytes(b"machine mode"),
        lambda kept, _: kept.rename(kept.with_name("b")) and kept.symlink_to("b"),
        lambda _, patch: patch.setattr(platform, "machine", lambda: "another"),
        lambda _, patch: patch.setattr(os, "cpu_count", lambda: 1000),
    ],
    ids=["truncated", "altered", "a link", "of another machine", "of other cores"],
)
def test_what_is_damaged_or_made_elsewhere_is_compiled_anew(runs, tmp_path, monkeypatch, spoil):
    folder, end = runs()
    (folder / "a.pb").write_bytes(b"machine code")
    end()
    [kept] = (tmp_path / "my cache" / "programs").iterdir()
    spoil(kept, monkeypatch)
    assert list(runs()[0].glob("*.pb")) == []


def test_runs_at_once_share_nothing_but_what_is_finished(runs, monkeypatch):
    first, end_first = runs()
    (first / "a.pb").write_bytes(b"machine code")
    second, end_second = runs()
    assert first.exists()
    assert not list(second.glob("*.pb"))
    (second / "a.pb").write_bytes(b"machine code, too")
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", os.getppid)
        end_first()  # of another process: a copy of it ends
    assert first.exists()
    end_second()
    assert not second.exists()
    third, _ = runs()
    assert (third / "a.pb").read_bytes() == b"machine code, too"


@pytest.mark.parametrize("machine", ["this one", "another"])
def test_what_a_killed_run_left_is_taken_where_it_was_made(runs, monkeypatch, machine):
    killed, end = runs()
    (killed / "a.pb").write_bytes(b"machine code")
    (killed / "b.pb.tmp").write_bytes(b"half of it")
    end.args[-1].close()
    if machine == "another":
        monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    monkeypatch.setattr(platform, "node", lambda: "another container")
    folder, _ = runs()
    assert not killed.exists()
    assert bool(list(folder.glob("*.pb"))) == (machine == "this one")


@pytest.mark.parametrize(("minutes", "stays"), [(0, True), (11, False)])
def test_a_folder_that_has_had_no_lock_for_long_is_removed(runs, minutes, stays):
    killed, _ = runs()
    (killed / "lock").unlink()
    old = time.time() - 60 * minutes
    os.utime(killed, (old, old))
    runs()
    assert killed.exists() == stays


def test_a_removal_that_is_killed_is_completed_by_the_next_run(runs, monkeypatch):
    killed, end = runs()
    (killed / "b.pb.tmp").write_bytes(b"half of it")
    with monkeypatch.context() as patch:
        patch.setattr(kept_programs, "remove", lambda path: sys.exit(path.name))
        with pytest.raises(SystemExit, match=r"b\.pb\.tmp"):
            end()
    end.args[-1].close()
    runs()
    assert not killed.exists()


def test_what_was_read_is_kept_as_if_it_were_new(runs, tmp_path):
    folder, end = runs()
    for name in ("read", "unread"):
        (folder / f"{name}.pb").write_bytes(name.encode())
    end()
    for kept in (tmp_path / "my cache" / "programs").iterdir():
        os.utime(kept, (5, 5))
    folder, end = runs()
    os.utime(folder / "read.pb", (9, 5))
    end()
    times = {
        path.read_text(): path.stat().st_mtime
        for path in (tmp_path / "my cache" / "programs").iterdir()
    }
    assert times["unread"] == 5 < times["read"]


def full(*_):
    raise OSError(errno.EDQUOT, "no room")


@pytest.mark.parametrize(
    "why",
    [
        lambda _, patch: patch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2"),
        lambda _, patch: patch.setenv("XLA_FLAGS", "--xla_dump_to=here"),
        lambda _, patch: patch.setenv("KERAS_BERT_CACHE", ""),
        lambda cache, patch: patch.setenv("KERAS_BERT_CACHE", f'{cache}"'),
        lambda cache, _: cache.symlink_to(cache.parent / "elsewhere"),
        lambda cache, _: cache.mkdir() or (cache / "programs").symlink_to(cache.parent),
        lambda _, patch: patch.setenv("TF_CPP_MIN_LOG_LEVEL", "2"),
        lambda _, patch: patch.setattr(kept_programs, "_CPU_FACTS", Path(os.devnull)),
        lambda _, patch: patch.setattr(os, "link", full),
        lambda _, patch: patch.setattr(Path, "write_bytes", full),
        lambda _, patch: patch.setattr(
            shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(2**20)
        ),
    ],
)
def test_nothing_is_kept_where_it_is_switched_off_or_cannot_be(runs, tmp_path, monkeypatch, why):
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    why(tmp_path / "my cache", monkeypatch)
    before = os.environ.get("TF_XLA_FLAGS")
    keep_programs()
    assert os.environ.get("TF_XLA_FLAGS") == before
    assert not list(tmp_path.glob("my cache/running/*"))
