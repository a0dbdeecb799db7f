"""A tool's standard streams: closed ones, a terminal that is closed, and what one would obey."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from keras_bert_impl.errors import escaped
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import tiny_config, write_any, write_classifier, write_tagger
from tests.support.programs import ROOT
from tools import embed, fill_mask, predict, similar, tokenize_text
from tools.endings import shown_streams

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


# Descriptors that the shell closed

TEXT = "The fox ran. A hen saw the fox.\n"
SENTENCES = "The fox ran.\nA hen saw the fox.\n\n"
SPLIT = "tools.split_sentences --input_file=in.txt --output_file=out.txt --num_workers=2"
OUT, IN = "standard output is closed", "standard input is closed"
CLOSED = {
    "keras_bert_impl --help >&-": (1, f"Error: {OUT}"),
    "tools.predict --help >&-": (1, f"Error: {OUT}"),
    "keras_bert_impl no_such_tool <&- >&-": (1, "Error: there is no tool"),
    "keras_bert_impl no_such_tool 2>&-": (1, ""),
    f"{SPLIT} <&-": (0, ""),
    f"{SPLIT} >&-": (0, f"Warning: {OUT}"),
    f"{SPLIT} <&- >&- 2>&-": (0, ""),
    "tools.split_sentences --input_file=in.txt --output_file=/dev/stdout >&-": (1, "Error: "),
    "tools.split_sentences --input_file=none.txt --output_file=out.txt 2>&-": (1, ""),
    "tools.tokenize_text --vocab_file=vocab.txt <&-": (1, f"Error: {IN}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", CLOSED)
def test_a_closed_stream_is_no_other_file_and_what_is_lost_is_told(tmp_path, command):
    (tmp_path / "in.txt").write_text(TEXT)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "fox"]))
    words = ["bash", "-c", f"{sys.executable} -m {command}"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    code, said = CLOSED[command]
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if command.startswith(SPLIT):
        assert (tmp_path / "out.txt").read_text() == SENTENCES


# A terminal that is closed

JOB = """
import os, sys, time
from pathlib import Path
from keras_bert_impl.progress import Progress
from keras_bert_impl.interrupts import on_stop
from tools.command_line import run
from tools.config_flags import ConfigFlags
from tools.endings import tell_stopped

os.open(os.ttyname(0), os.O_RDWR)  # from now on it is the terminal of this session
seconds = 0.01

def wait():
    Path("begun").touch()
    while True:
        time.sleep(seconds)

def train():
    progress = Progress("train", None, "steps", clock=iter(range(10**9)).__next__)
    with on_stop() as stop:
        Path("begun").touch()
        while not stop.requested:
            time.sleep(seconds)
            progress.advance()
    sys.stderr.write("saving\\n")
    Path("saved").touch()
    tell_stopped("Stopped; all is saved.")

sys.exit(run(ConfigFlags("Works."), {"wait": wait, "train": train}[sys.argv[1]], []))
"""


def in_a_terminal(folder, *words):
    """Starts a program in a terminal of its own; gives it, and a descriptor to close that."""
    outer, inner = pty.openpty()
    streams = {"stdin": inner, "stdout": inner, "stderr": inner}
    program = subprocess.Popen(
        [*words], cwd=folder, env=ENVIRONMENT, start_new_session=True, **streams
    )
    os.close(inner)
    while not (folder / "begun").exists():
        assert program.poll() is None
        time.sleep(0.02)
    return program, outer


@pytest.mark.slow
@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("kind", ["wait", "train"])
def test_a_closed_terminal_stops_a_tool_in_good_order(tmp_path, kind):
    program, terminal = in_a_terminal(tmp_path, sys.executable, "-c", JOB, kind)
    os.close(terminal)
    assert program.wait(20) == 128 + signal.SIGHUP
    assert (tmp_path / "saved").exists() == (kind == "train")


@pytest.mark.slow
def test_a_tool_that_ignores_it_outlives_its_terminal(tmp_path):
    ignoring = 'trap "" HUP; exec "$@"'
    words = ["sh", "-c", ignoring, "sh", sys.executable, "-c", JOB, "train"]
    program, terminal = in_a_terminal(tmp_path, *words)
    os.close(terminal)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(1)
    program.terminate()
    assert program.wait(20) == 128 + signal.SIGTERM
    assert (tmp_path / "saved").exists()


# What a terminal would obey

HOSTILE = "a\x1b[31m\x07\x9b1m\u202e\x7f\U000e0041"
SEEN = r"a\x1b[31m\x07\u009b1m\u202e\u007f\udb40\udc41"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models whose labels and tokens are hostile, and files of such texts."""
    folder = tmp_path_factory.mktemp("hostile")
    words = Vocabulary([*SPECIAL_TOKENS, HOSTILE, "dog", "."])
    config = tiny_config(vocab_size=len(words))
    write_any(folder / "masked", BertPretrainer(config), words)
    write_classifier(folder / "classifier", [HOSTILE, "good"])
    write_tagger(folder / "tagger", [f"B-{HOSTILE}", f"I-{HOSTILE}"])
    (folder / "vocab.txt").write_text("\n".join(words.tokens))
    (folder / "lines.txt").write_text(f"{HOSTILE}\nthe dog\n")
    flags = [f"--model={folder}/classifier", f"--input_file={folder}/lines.txt"]
    assert embed.main([*flags, f"--output_file={folder}/lines.npy"]) == 0
    return folder


PRINTS = {
    "labels": (predict, "--model={}/classifier --text=dog"),
    "labels in JSON": (predict, "--model={}/classifier --text=dog --format=json"),
    "tags": (predict, "--model={}/tagger --text=dog"),
    "tags in JSON": (predict, "--model={}/tagger --text=dog --format=json"),
    "tokens": (fill_mask, "--model={}/masked --text=[MASK]"),
    "texts": (
        similar,
        "--model={0}/classifier --input_file={0}/lines.txt --vectors_file={0}/lines.npy "
        "--query=dog",
    ),
    "texts in JSON": (tokenize_text, "--vocab_file={0}/vocab.txt --input_file={0}/lines.txt"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PRINTS)
def test_no_tool_prints_what_a_terminal_obeys(folder, capsys, what):
    tool, flags = PRINTS[what]
    assert tool.main(flags.format(folder).split()) == 0
    printed = capsys.readouterr()
    assert escaped(printed.out) == printed.out
    assert escaped(printed.err) == printed.err
    if what.endswith("JSON"):
        assert all(map(json.loads, printed.out.splitlines()))
    else:
        assert SEEN in printed.out


def test_json_keeps_its_values(capsys):
    with shown_streams():
        sys.stdout.write(json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False))
    assert json.loads(capsys.readouterr().out) == {HOSTILE: HOSTILE}
