import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.command_line import run
from tools.config_flags import ConfigFlags
from tools.endings import EXIT_USER_ERROR, run_to_an_end

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


def test_a_bug_keeps_its_traceback():
    def work(_stops):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        run_to_an_end(work)


PRINTS = """
import sys
from tools.command_line import run
from tools.config_flags import ConfigFlags
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
@pytest.mark.parametrize("text", ["one word", "many words " * 10_000])
def test_a_full_standard_output_is_an_error_also_where_it_fails_at_the_end(text):
    with Path("/dev/full").open("w") as full:
        done = printed(text, full)
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


@pytest.mark.slow
def test_a_standard_output_without_the_letters_is_one_sentence():
    done = printed("배", subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: standard output is ascii, which has no '\\ubc30'; set PYTHONIOENCODING=utf-8.\n"
    )


@pytest.mark.parametrize("content", ["device", "large", "NUL", "folder", "absent"])
def test_a_flag_file_may_be_anything(tmp_path, capsys, content):
    flag_set = ConfigFlags("Counts.")
    flag_set.define("name", str, None, "A name.")
    path = tmp_path / "flags"
    if content == "device":
        path.symlink_to("/dev/zero")
    elif content == "large":
        path.write_bytes(b"x" * (2 << 20))
    elif content == "NUL":
        path.write_bytes(b"--name=a\0b\n")
    elif content == "folder":
        path.mkdir()
    assert run(flag_set, lambda: None, [f"--flagfile={path}"]) == EXIT_USER_ERROR
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
