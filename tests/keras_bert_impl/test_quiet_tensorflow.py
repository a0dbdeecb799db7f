import os
import subprocess
import sys

import pytest

from keras_bert_impl.quiet_tensorflow import standard_error_held_back

PROGRAM = (
    "from keras_bert_impl.quiet_tensorflow import import_tensorflow_quietly as quietly\n"
    "quietly()\n"
    "import tensorflow as tf\n"
    "assert int(tf.constant(1) + 1) == 2\n"
)


@pytest.mark.parametrize("inherited", [{}, {"TF_CPP_MIN_LOG_LEVEL": "3"}])
def test_importing_tensorflow_prints_nothing(inherited):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")} | inherited
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_was_held_back_is_shown_when_the_block_fails(capfd):
    def fail():
        with standard_error_held_back():
            os.write(2, b"the reason\n")
            raise ImportError("no")

    with pytest.raises(ImportError):
        fail()
    assert capfd.readouterr().err == "the reason\n"
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"
