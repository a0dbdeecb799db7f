"""What one run compiles, the next one finds: whole, made for this machine, and nothing else."""

import atexit
import os
import platform
import re
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from keras_bert_impl.kept_programs import keep_programs


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Begins a run, as if TensorFlow were not imported; gives its folder, and what ends it."""
    ends = []
    monkeypatch.setattr(atexit, "register", lambda *call: ends.append(call))
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "my cache"))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)

    def begin():
        monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
        keep_programs()
        give, *arguments = ends[-1]
        return Path(re.findall('directory="(.*?)"', os.environ["TF_XLA_FLAGS"])[0]), lambda: give(
            *arguments
        )

    return begin


def test_a_run_finds_what_the_run_before_compiled(runs, tmp_path):
    folder, end = runs()
    (folder / "a.pb").write_bytes(b"machine code")
    (folder / "b.pb.tmp").write_bytes(b"half of it")
    end()
    assert not folder.exists()
    folder, end = runs()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.pb": b"machine code"}
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
    assert list(runs()[0].iterdir()) == []


def test_runs_at_once_share_nothing_but_what_is_finished_and_the_killed_leave_nothing(
    runs, tmp_path, monkeypatch
):
    killed, _ = runs()
    first, end_first = runs()  # of the same number, as in a container
    (first / "a.pb").write_bytes(b"machine code")
    other = os.getppid()
    monkeypatch.setattr(os, "getpid", lambda: other)
    second, end_second = runs()
    assert list(second.iterdir()) == []
    assert first.exists()
    (second / "a.pb").write_bytes(b"machine code, too")
    end_first()  # of another process: a copy of it ends
    assert first.exists()
    end_second()
    assert killed == first
    assert not second.exists()
    third, _ = runs()
    assert (third / "a.pb").read_bytes() == b"machine code, too"


@pytest.mark.parametrize(
    "why",
    [
        lambda _, patch: patch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2"),
        lambda _, patch: patch.setenv("XLA_FLAGS", "--xla_dump_to=here"),
        lambda _, patch: patch.setenv("KERAS_BERT_CACHE", ""),
        lambda cache, patch: patch.setenv("KERAS_BERT_CACHE", f'{cache}"'),
        lambda cache, _: cache.symlink_to(cache.parent / "elsewhere"),
        lambda cache, _: cache.mkdir() or (cache / "programs").symlink_to(cache.parent),
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
