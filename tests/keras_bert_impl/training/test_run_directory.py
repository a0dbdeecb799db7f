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
