"""Tools that are stopped, or may write no large file: the same command ends as if nothing were.

Stops of pre-training are in `test_run_pretraining_resume`, of fine-tuning in `test_many_runs`; a
disk that is full when training saves is in `tests/keras_bert_impl/training/test_loop`.
"""

import os
import re
import shutil
import signal
import time

import numpy as np
import pytest

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from tests.support.model_folders import write_encoder
from tests.support.programs import ROOT, Program, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("keyboard")]

LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
runpy.run_module("keras_bert_impl", run_name="__main__", alter_sys=True)
"""
MOST_BYTES = 10_000  # more than the lines that a tool says
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BERT_CACHE": ""}
LETTERS = "etaoinshrdlu"


def made_text(folder, documents=120):
    draw = np.random.default_rng(1)
    words = ["".join(draw.choice(list(LETTERS), draw.integers(2, 9))) for _ in range(4000)]
    lines = [" ".join(draw.choice(words, 9)) + "." for _ in range(8 * documents)]
    texts = ("\n".join(lines[first : first + 8]) for first in range(0, len(lines), 8))
    (folder / "text.txt").write_text("\n\n".join(texts) + "\n")
    tokens = [*SPECIAL_TOKENS, ".", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))


def embedder(folder):
    write_encoder(folder / "model")
    (folder / "lines.txt").write_text("the dog runs\na cat\n" * 1000)


DATA = (
    "create_pretraining_data --input_file=text.txt --vocab_file=vocab.txt --num_shards=4"
    " --output_file=out/data.tfrecord --max_seq_length=64 --max_predictions_per_seq=10"
    " --dupe_factor=4"
)
JOBS = {
    "create_pretraining_data": (made_text, DATA),
    "embed": (embedder, "embed --model=model --input_file=lines.txt --output_file=out/lines.npy"),
}
BEGUN = {  # what a command that is stopped has begun, and the signal
    "create_pretraining_data": ("out/.data.tfrecord.work/*", signal.SIGINT),
    "embed": ("out/.lines.npy.incomplete/vectors", signal.SIGTERM),
}


def results(folder):
    """What lies there, but for work in progress and logs, which have times in them."""
    kept = ("*.npy", "*.tfrecord-*")
    paths = sorted(path for pattern in kept for path in (folder / "out").rglob(pattern))
    hidden = (path for path in paths if not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in hidden}


def stop(words, folder, begun, number):
    """Stops a command as soon as it has begun something."""
    process = Program(["keras_bert_impl", *words], ENVIRONMENT, folder)
    while not list(folder.glob(begun)) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate()
    if words[0] == "embed" and process.returncode == 0:
        return  # it had its vectors, or a library's callback of the collector met the signal
    assert process.returncode in (-number, 128 + number), said[-3000:]
    assert "Traceback" not in said


@pytest.mark.parametrize("name", JOBS)
def test_a_full_disk_is_one_sentence_and_after_stops_the_bytes_are_the_same(tmp_path, name):
    make, command = JOBS[name]
    make(tmp_path)
    words = command.split()
    run(["keras_bert_impl", *words], ENVIRONMENT, tmp_path, check=True)
    (tmp_path / "whole").mkdir()
    (tmp_path / "out").rename(tmp_path / "whole" / "out")

    limited = run(["-c", LIMITED.format(limit=MOST_BYTES), *words], ENVIRONMENT, tmp_path)
    assert limited.returncode == 1, limited.stderr[-3000:]
    assert len(re.findall("^Error: .+", limited.stderr, re.MULTILINE)) == 1, limited.stderr[-3000:]
    assert "Traceback" not in limited.stderr
    run(["keras_bert_impl", *words], ENVIRONMENT, tmp_path, check=True)
    assert results(tmp_path) == results(tmp_path / "whole")
    shutil.rmtree(tmp_path / "out")
    stop(words, tmp_path, *BEGUN[name])
    run(["keras_bert_impl", *words], ENVIRONMENT, tmp_path, check=True)
    assert results(tmp_path) == results(tmp_path / "whole")
