import fcntl
import os
import subprocess
import sys

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.locks import owned
from tests.support.pretraining_run import ROOT

HOLD = """
import sys
from pathlib import Path
from keras_bert_impl.locks import owned
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
