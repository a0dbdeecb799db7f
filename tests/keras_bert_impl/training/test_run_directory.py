import subprocess
import sys

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from tests.support.pretraining_run import ROOT

HOLD = """
import sys
from keras_bert_impl.training.run_directory import RunDirectory
with RunDirectory.open(sys.argv[1]).taken():
    print("taken", flush=True)
    sys.stdin.read()
"""


def test_two_processes_do_not_train_in_one_folder_and_a_killed_one_lets_go(tmp_path):
    run = RunDirectory.open(tmp_path)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert other.stdout.readline() == "taken\n"
    with pytest.raises(UserError, match="another process is training in this folder"), run.taken():
        pass
    other.kill()
    other.communicate()
    with run.taken():
        pass


def test_a_folder_can_be_taken_again_when_the_block_has_ended(tmp_path):
    run = RunDirectory.open(tmp_path)
    for _ in range(2):
        with run.taken():
            pass


def test_what_a_killed_run_left_half_written_goes_and_what_others_write_stays(tmp_path):
    run = RunDirectory.open(tmp_path)
    left = tmp_path / ".best_checkpoint.other-host.7.incomplete"
    others = tmp_path / ".vectors.npz.other-host.7.incomplete"
    left.mkdir()
    others.write_text("")
    with run.taken():
        assert not left.exists()
        assert others.exists()
