"""The good end of a run on Beam is quiet, and every other end is told as before."""

import logging
import os
import subprocess
import sys
import threading

import pytest

from pipelines.runners import quiet_beam
from pipelines.runners.quiet_beam import keep_beam_quiet

DATA_PLANE = "apache_beam.runners.worker.data_plane"


grpc = pytest.importorskip("grpc")


@grpc.Call.register
class RpcError(Exception):
    def __init__(self, name):
        super().__init__(name)
        self._name = name

    def code(self):
        return grpc.StatusCode[self._name]


@pytest.fixture
def shown(monkeypatch):
    """The errors of threads that are shown."""
    shown = []
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(quiet_beam, "_shown", lambda failed: shown.append(failed.exc_value))
    keep_beam_quiet()
    keep_beam_quiet()  # once is enough
    return shown


def read_in(module, error):
    """Reads in a thread, as Beam's module does: logs what failed, and raises it."""
    space = {"__name__": module, "logging": logging, "error": error}
    exec(
        "def read():\n"
        "    try:\n"
        "        raise error\n"
        "    except Exception:\n"
        "        logging.getLogger(__name__).exception('Failed to read inputs.')\n"
        "        raise\n",
        space,
    )
    thread = threading.Thread(target=space["read"])
    thread.start()
    thread.join()


def test_a_reader_that_the_runner_hangs_up_on_is_silent(shown, caplog):
    read_in(DATA_PLANE, RpcError("CANCELLED"))
    assert (shown, caplog.records) == ([], [])


@pytest.mark.parametrize(
    ("module", "error"),
    [
        (DATA_PLANE, RpcError("UNAVAILABLE")),
        (DATA_PLANE, ValueError("a bug")),
        ("somebody.else", ValueError("a bug")),
    ],
)
def test_every_other_error_is_shown(shown, caplog, module, error):
    read_in(module, error)
    assert shown == [error]
    assert [record.exc_info[1] for record in caplog.records] == [error]


def test_three_remarks_are_left_out_and_warnings_stay(shown, caplog):
    assert shown == []
    logging.getLogger("apache_beam.utils.subprocess_server").warning("Really starting service at")
    logging.getLogger().warning("apitools not found, and bigquery")
    logging.getLogger("apache_beam.utils.subprocess_server").warning("The service ended")
    assert [record.getMessage() for record in caplog.records] == ["The service ended"]


WORKER = """
import logging, sys
logging.disable()  # what Beam itself says when it is imported

from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.recipe import PretrainingDataConfig
from pipelines.runners.beam import TokenizeBlock

vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
config = PretrainingDataConfig(input_file=("x",), output_file="y", vocab_file="z")
TokenizeBlock(config, vocabulary).setup()
assert "tensorflow" in sys.modules
"""


@pytest.mark.slow
def test_a_worker_of_its_own_starts_without_tensorflow_s_lines():
    pytest.importorskip("apache_beam")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    done = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
