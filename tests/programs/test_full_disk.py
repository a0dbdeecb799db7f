"""Tools that may write no large file end with one sentence; then the same command goes on.

A limit on the size of files needs no root and no disk; `tests.support.full_disk` fills real ones.
"""

import hashlib
import os
import re

import pytest

from tests.support import stopped_jobs
from tests.support.programs import ROOT, run

LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
runpy.run_module("keras_bert_impl", run_name="__main__", alter_sys=True)
"""
SMALL = {
    "split_sentences": lambda folder: stopped_jobs.made_documents(folder / "text.jsonl", 400),
    "create_pretraining_data": lambda folder: (
        stopped_jobs.made_text(folder / "text.txt", 200),
        stopped_jobs._vocabulary(folder),
    ),
    "embed": lambda folder: (stopped_jobs._encoder(folder), stopped_jobs._lines(folder, 800)),
    "convert_checkpoint": stopped_jobs._encoder,
    "run_classifier": lambda folder: stopped_jobs._classifier_files(folder, 60),
    "run_squad": lambda folder: stopped_jobs._squad_files(folder, 40, 40),
}
OFTEN = ("embed", "split_sentences")
MOST_BYTES = 10_000  # more than the lines that the tool says
TRAINING = ("run_classifier", "run_squad")


def _words(job):
    return [word.replace("INPUTS", "../inputs") for word in job.words[2:]]


def _results(folder):
    """The digests of what lies there, but for work in progress and logs."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "tool",
    [tool if tool in OFTEN else pytest.param(tool, marks=pytest.mark.long) for tool in SMALL],
)
def test_a_file_that_cannot_be_written_is_one_sentence_and_no_loss(tmp_path, tool):
    (tmp_path / "inputs").mkdir()
    SMALL[tool](tmp_path / "inputs")
    job = {**stopped_jobs.JOBS, **stopped_jobs.QUICK}[tool]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BERT_CACHE": ""}
    limited, free = tmp_path / "limited", tmp_path / "free"
    limited.mkdir()
    free.mkdir()
    program = LIMITED.format(limit=MOST_BYTES)
    first = run(["-c", program, *_words(job)], environment, limited)
    assert first.returncode == 1, first.stderr[-3000:]
    assert len(re.findall("^Error: .+", first.stderr, re.MULTILINE)) == 1, first.stderr[-3000:]
    assert "Traceback" not in first.stderr
    run(["keras_bert_impl", *_words(job)], environment, limited, check=True)
    if tool not in TRAINING:  # whose logs have times in them; `test_random_stops` compares them
        run(["keras_bert_impl", *_words(job)], environment, free, check=True)
        assert _results(limited) == _results(free)
