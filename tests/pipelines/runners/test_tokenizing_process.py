"""In processes of their own: importing the module changes the process."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import pipelines.runners.tokenizing_process
if not {"tensorflow", "keras_bert_impl.tokenization.cutting"} <= set(sys.modules):
    sys.exit("what every worker needs would be loaded in each of them again")
for package in ("keras", "jax"):
    try:
        __import__(package)
    except ImportError:
        continue
    sys.exit(f"{package} can be imported")
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
tokenizer = Tokenizer(TextSettings(Vocabulary([*SPECIAL_TOKENS, "a", "##b"])))
assert tokenizer.encode_lines(["ab A"])[0].tolist() == [5, 6, 5]
"""


def test_a_tokenizing_process_works_without_what_it_can_spare():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},  # inherited from every tool
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert result.stderr == ""
