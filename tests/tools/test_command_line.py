import errno
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError, escaped
from keras_bert_impl.files import open_whole
from keras_bert_impl.interrupts import on_stop
from keras_bert_impl.options import as_list_text
from tests.support.programs import ROOT
from tools import command_line
from tools.command_line import EXIT_USER_ERROR, run_to_an_end, tell_stopped
from tools.config_flags import ConfigFlags, add_compile_cache
from tools.table import tool_named, tool_names

KEPT = "what is finished is kept, and the same command continues"


def flag_set_of_all_kinds():
    flag_set = ConfigFlags("Does things.\n\nExample: do --name=x")
    holders = {
        "name": flag_set.define("name", str, None, "The name of the thing.", required=True),
        "count": flag_set.define("count", int, 3, "How many things."),
        "rate": flag_set.define("rate", float, 1e-4, "Things per second."),
        "fast": flag_set.define("fast", bool, True, "Be fast."),
        "form": flag_set.define("form", str, "text", "How to write.", choices=["text", "json"]),
        "kinds": flag_set.define("kinds", list, ["a"], "Which kinds."),
    }
    return flag_set, holders


def test_flags_have_their_defaults_and_read_their_values():
    flag_set, holders = flag_set_of_all_kinds()
    flag_set.parse(["--name=x", "--nofast", "--kinds=a,b", "--rate=0.5"])
    values = {name: holder.value for name, holder in holders.items()}
    assert values == {
        "name": "x",
        "count": 3,
        "rate": 0.5,
        "fast": False,
        "form": "text",
        "kinds": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--name=x", "--cuont=3"], "--cuont is not a flag; did you mean --count?"),
        (["--name=x", "--epochs=3"], "--epochs is not a flag; --help lists them."),
        (["--name=x", "--count=many"], "count"),
        (["--name=x", "--form=xml"], "form"),
        (["--name=x", "stray"], "stray"),
        (["--name=x", "--nofast=true"], "nofast"),
        (["--flagfile=/no/such/file"], "/no/such/file"),
        ([], "name"),
    ],
)
def test_a_bad_command_line_is_one_sentence_that_names_the_flag(arguments, names, capsys):
    flag_set, _ = flag_set_of_all_kinds()
    assert command_line.run(flag_set, lambda: None, arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert names in error


def test_a_flagfile_repeats_a_run(tmp_path):
    flag_set, _ = flag_set_of_all_kinds()
    flag_set.parse(["--name=two words", "--count=7", "--nofast", "--kinds=a,b"])
    (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile())

    again, holders = flag_set_of_all_kinds()
    again.parse([f"--flagfile={tmp_path}/flags.cfg"])
    assert (holders["name"].value, holders["count"].value) == ("two words", 7)
    assert holders["fast"].value is False
    assert again.as_flagfile() == flag_set.as_flagfile()


def test_unknown_flags_can_be_passed_on():
    flag_set, holders = flag_set_of_all_kinds()
    words = ["--name=x", "--temp_location", "/tmp/t", "--streaming", "--count=7"]
    flag_set.parse(words, keep_unknown=True)
    assert flag_set.extra_arguments == ["--temp_location", "/tmp/t", "--streaming"]
    assert holders["count"].value == 7


def test_what_is_meant_for_the_tool_is_not_passed_on(capsys):
    flag_set, _ = flag_set_of_all_kinds()
    words = ["--name=x", "--temp_location", "gs://x", "--count=many"]
    assert command_line.run(flag_set, lambda: None, words, keep_unknown=True) == 1
    assert "--count=many must be an integer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("--count=None", "an integer"),
        ("--count=", "an integer"),
        ("--rate=None", "a number"),
        ("--fast=None", "true or false"),
        ("--form=None", "one of text, json"),
    ],
)
def test_a_value_of_another_kind_is_told_once_with_what_the_flag_takes(word, wanted):
    flag_set, _ = flag_set_of_all_kinds()
    with pytest.raises(UserError) as raised:
        flag_set.parse(["--name=x", word])
    assert str(raised.value) == f"{word} must be {wanted}; --help lists the flags."


@pytest.mark.parametrize("word", ["--help", "--help=true"])
def test_help_shows_usage_and_every_flag_with_its_default(word, capsys):
    flag_set, _ = flag_set_of_all_kinds()
    assert command_line.run(flag_set, lambda: None, [word]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Does things.")
    for line in (
        "--name (required)\n      The name of the thing.",
        "--count (default 3)",
        "--form=text|json (default text)",
        "--fast (on by default; --nofast turns it off)",
        "--kinds (default a)",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("continues", "said"),
    [
        (False, "\nInterrupted; no file was written, and the same command begins anew.\n"),
        (True, f"\nInterrupted; {KEPT}.\n"),
    ],
)
def test_an_interruption_is_no_traceback_and_promises_only_what_is_true(continues, said, capsys):
    def main():
        raise KeyboardInterrupt

    assert command_line.run(ConfigFlags(""), main, [], continues=continues) == 130
    assert capsys.readouterr().err == said


def test_an_interruption_names_what_is_there_already(tmp_path, capsys):
    def main():
        with open_whole(tmp_path / "first.txt") as file:
            file.write("1")
        with open_whole(tmp_path / "second.txt") as file:
            file.write("2")
            raise KeyboardInterrupt

    assert command_line.run(ConfigFlags(""), main, []) == 130
    said = f"\nInterrupted; {tmp_path}/first.txt is written, and the same command begins anew.\n"
    assert capsys.readouterr().err == said


def works_with_backend(monkeypatch, backend):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    return command_line.run(ConfigFlags("Works."), lambda: None, [])


@pytest.mark.parametrize("backend", ["jax", "\x1b[31m"])
def test_a_tool_computes_with_tensorflow_or_says_why_not(backend, monkeypatch, capsys):
    assert works_with_backend(monkeypatch, backend) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"Error: KERAS_BACKEND={escaped(backend)}: the tools compute with T")
    assert error.count("\n") == 1


@pytest.mark.parametrize("flag", ["--compile_cache", "--nocompile_cache"])
def test_a_tool_decides_for_those_that_it_runs_whether_programs_are_kept(monkeypatch, flag):
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    asked = []
    monkeypatch.setattr(
        command_line, "keep_programs", lambda: asked.append("TF_XLA_FLAGS" in os.environ)
    )
    outer, inner = ConfigFlags("Does things."), ConfigFlags("Does one thing.")
    add_compile_cache(outer)
    add_compile_cache(inner)
    command_line.run(outer, lambda: command_line.run(inner, lambda: None, []), [flag])
    assert asked == ([False, False] if flag == "--compile_cache" else [True])


@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("error", [ImportError("numpy is broken"), UserError("a worker died.")])
def test_a_stop_stays_one_where_foreign_code_makes_another_exception_of_it(error, capsys):
    def main():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise error from None

    assert command_line.run(ConfigFlags(""), main, [], continues=True) == 130
    assert (
        capsys.readouterr().err
        == "\nInterrupted; what is finished is kept, and the same command continues.\n"
    )


def test_sigterm_where_nothing_can_be_saved_is_a_sentence_and_143(capsys):
    def main():
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError

    before = signal.getsignal(signal.SIGTERM)
    assert command_line.run(ConfigFlags(""), main, [], continues=True) == 143
    assert (
        capsys.readouterr().err
        == "\nTerminated; what is finished is kept, and the same command continues.\n"
    )
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("error", [None, UserError("the study was stopped.")])
def test_a_stop_that_was_heeded_is_no_success(number, code, error):
    def main():
        with on_stop() as stop:
            signal.raise_signal(number)
            assert stop.requested
        if error:
            raise error

    assert command_line.run(ConfigFlags(""), main, []) == code
    assert command_line.run(ConfigFlags(""), lambda: None, []) == 0


@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("is_told", [True, False])
def test_a_stop_is_told_once_even_where_nothing_was_left_to_do(is_told, capsys):
    def main():
        with on_stop():
            signal.raise_signal(signal.SIGINT)
        if is_told:
            tell_stopped("Stopped after step 7.")

    for _ in range(2):
        assert command_line.run(ConfigFlags(""), main, []) == 130
        printed = capsys.readouterr()
        assert printed.out == ("Stopped after step 7.\n" if is_told else "")
        assert ("Stopped, but all was finished before." in printed.err) is not is_told


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        command_line.run(ConfigFlags(""), lambda: 1 / 0, [])


@pytest.mark.parametrize("tool", tool_names())
def test_every_flag_for_several_items_given_twice_has_all_of_them_and_so_has_its_flagfile(
    tool, tmp_path
):
    flag_set = tool_named(tool).flags
    missing = re.findall(r"--(\w+).* \(required\)", flag_set.help_text())
    first, second = 'one, two,"3, ""4"" ",', '  "five"'
    for flag in flag_set.lists():
        needed = [f"--{one}=x" for one in missing if one != flag.name]
        flag_set.parse([*needed, f"--{flag.name}={first}", f"--{flag.name}={second}"])
        items = ["one", "two", '3, "4" ', "", "five"] if flag.separated else [first, second]
        assert flag_set.value_of(flag.name) == items

        (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile())
        flag_set.parse([f"--flagfile={tmp_path}/flags.cfg"])
        assert flag_set.value_of(flag.name) == items


def test_what_the_command_line_says_of_a_list_replaces_what_flag_files_say(tmp_path):
    (tmp_path / "inner.cfg").write_text("# Kinds.\n--kinds=i\n--count=2\n")
    (tmp_path / "outer.cfg").write_text(
        f"--kinds=o\n--flagfile={tmp_path}/inner.cfg\n\n  --kinds=p\n--name=x\n"
    )
    flag_set, holders = flag_set_of_all_kinds()
    outer = f"--flagfile={tmp_path}/outer.cfg"
    for words, kinds in (
        ([outer], ["o", "p"]),
        ([f"--flagfile={tmp_path}/inner.cfg", "--name=x"], ["i"]),
        ([outer, "--kinds=c", "--kinds=d"], ["c", "d"]),
        (["--kinds=c", "--flagfile", f"{tmp_path}/outer.cfg", "--kinds=d"], ["c", "d"]),
        (["--kinds=c", outer], ["o", "p"]),
        ([outer, "--kinds="], []),
    ):
        flag_set.parse(words)
        assert holders["kinds"].value == kinds
        assert holders["name"].value == "x"
    flag_set.parse([outer])
    assert holders["count"].value == 2


@pytest.mark.parametrize(
    "value", [" a", '"a"', '""" ""', '"', "a,b", "# a", "Wörter\u2028ゑ", "\r"]
)
def test_a_flagfile_repeats_a_text_to_the_last_blank(value, tmp_path):
    flag_set, _ = flag_set_of_all_kinds()
    texts = flag_set.define("text", list, None, "A text.", separated=False)
    flag_set.parse([f"--name={value}", f"--kinds=b,{as_list_text([value])}", f"--text={value}"])
    (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile(), encoding="utf-8", newline="")
    flag_set.parse([f"--flagfile={tmp_path}/flags.cfg"])
    values = [flag_set.value_of(name) for name in ("name", "kinds", "text")]
    assert values == [value, ["b", value], [value]]
    assert texts.value == [value]


@pytest.mark.parametrize("flag", ["name", "kinds", "text"])
def test_a_flagfile_with_a_value_of_two_lines_is_refused(flag):
    flag_set, _ = flag_set_of_all_kinds()
    flag_set.define("text", list, None, "A text.", separated=False)
    flag_set.parse(["--name=x", f"--{flag}=a\nb"])
    with pytest.raises(UserError, match=f"`{flag}` holds a line end"):
        flag_set.as_flagfile()


def test_a_second_command_line_in_one_process_starts_from_the_defaults():
    flag_set, holders = flag_set_of_all_kinds()
    flag_set.parse(["--name=x", "--count=9"])
    flag_set.parse(["--name=y"])
    assert (holders["name"].value, holders["count"].value) == ("y", 3)


def test_a_warning_is_shown_once_and_what_is_logged_each_time(capsys):
    log = logging.getLogger("pipelines.some")

    def work():
        for _ in range(2):
            log.warning("a row has no text")
            log.info("read")

    command_line.run(ConfigFlags("Does things."), work, [])
    assert capsys.readouterr().err.splitlines() == ["a row has no text", "read", "read"]


FULL = "No space left on device"
REFUSED = {
    "out.txt: No space left on device": OSError(errno.ENOSPC, FULL, "out.txt"),
    "the output: Read-only file system": OSError(errno.EROFS, "Read-only file system"),
    "No space left on device": RuntimeError("model.tmp; No space left on device [Op:SaveV2]"),
    "the memory does not suffice": MemoryError(),
    "nested too deeply": RecursionError(),
    "let TMPDIR name a folder": FileNotFoundError(
        errno.ENOENT, "No usable temporary directory found in ['/tmp']"
    ),
    "its name holds a NUL character": ValueError("embedded null byte"),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_the_machine_refuses_is_one_sentence(capsys, sentence):
    def work(_stops):
        raise REFUSED[sentence]

    assert run_to_an_end(work) == EXIT_USER_ERROR
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("Error: ")
    assert said.count("\n") == 1


PRINTS = """
import sys
from tools.command_line import run
from tools.config_flags import ConfigFlags, add_compile_cache
sys.exit(run(ConfigFlags("Prints."), lambda: print(sys.argv[1]), []))
"""


def printed(text, out, **variables):
    return subprocess.run(
        [sys.executable, "-c", PRINTS, text],
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.mark.slow
def test_a_full_standard_output_is_an_error_also_where_it_fails_at_the_end():
    with Path("/dev/full").open("w") as full:
        done = printed("one word", full)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: the output: No space left on device; free some space, or check the name and "
        "permissions.\n"
    )


@pytest.mark.slow
def test_a_reader_that_went_away_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = printed("one word", writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SPLIT = "split_sentences --input_file=in.txt --output_file=out.txt --num_workers=2"


@pytest.mark.slow
def test_streams_that_the_shell_closed_are_no_other_files(tmp_path):
    (tmp_path / "in.txt").write_text("The fox ran. A hen saw the fox.\n")
    words = ["bash", "-c", f"{sys.executable} -m tools {SPLIT} <&- >&- 2>&-"]
    assert subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT).returncode == 0
    assert (tmp_path / "out.txt").read_text() == "The fox ran.\nA hen saw the fox.\n\n"


JOB = """
import os, sys, time
from pathlib import Path
from keras_bert_impl.progress import Progress
from keras_bert_impl.interrupts import on_stop
from tools.command_line import run, tell_stopped
from tools.config_flags import ConfigFlags, add_compile_cache

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
        words, cwd=folder, env=ENVIRONMENT, start_new_session=True, **streams
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


def test_json_keeps_its_values_on_a_stream_that_escapes(capsys):
    values = {"a\x1b[31m\x07\x9b1m\u202e": "\x7f\U000e0041"}
    run = json.dumps(values, ensure_ascii=False)
    assert run_to_an_end(lambda _: (sys.stdout.write(run), 0)[1]) == 0
    printed = capsys.readouterr().out
    assert escaped(printed) == printed
    assert json.loads(printed) == values
