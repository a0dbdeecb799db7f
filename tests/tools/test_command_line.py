import importlib
import logging
import os
import re
import signal

import pytest

from keras_bert_impl.errors import UserError, escaped
from keras_bert_impl.files import open_whole
from keras_bert_impl.interrupts import kept_so_far, on_stop
from keras_bert_impl.options import as_list_text
from tools import command_line
from tools.__main__ import tool_names
from tools.config_flags import ConfigFlags
from tools.endings import tell_stopped

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
    flag_set, _ = flag_set_of_all_kinds()
    flag_set.parse(["--name=x", "--temp_location=/tmp/t"], keep_unknown=True)
    assert flag_set.extra_arguments == ["--temp_location=/tmp/t"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--counts=5"], "'--counts' is not a flag; --count is"),
        (["--temp_location=x", "--nofasst"], "'--nofasst' is not a flag; --nofast is"),
        (["--fast", "false"], "'false' is not a flag"),
        (["--nofast", "true"], "'true' is not a flag"),
    ],
)
def test_what_is_meant_for_the_tool_is_not_passed_on(arguments, said, capsys):
    flag_set, _ = flag_set_of_all_kinds()
    words = ["--name=x", *arguments]
    assert command_line.run(flag_set, lambda: None, words, keep_unknown=True) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--temp_location", "x"], ["--max_counts=7"], ["--fast", "--streaming"], ["--streaming", "x"]],
)
def test_what_is_meant_for_another_program_is_passed_on(arguments):
    flag_set, _ = flag_set_of_all_kinds()
    words = ["--name=x", *arguments]
    assert command_line.run(flag_set, lambda: None, words, keep_unknown=True) == 0
    assert flag_set.extra_arguments == [word for word in arguments if word != "--fast"]


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


def test_a_flag_after_one_of_another_program_and_its_value_is_still_the_tool_s():
    flag_set, holders = flag_set_of_all_kinds()
    words = ["--name=x", "--temp_location", "gs://x", "--count=7"]
    flag_set.parse(words, keep_unknown=True)
    assert holders["count"].value == 7
    assert flag_set.extra_arguments == ["--temp_location", "gs://x"]


def test_help_shows_usage_and_every_flag_with_its_default(capsys):
    flag_set, _ = flag_set_of_all_kinds()
    assert command_line.run(flag_set, lambda: None, ["--help"]) == 0
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


def test_what_a_user_can_mend_is_one_line_and_exit_code_1(capsys):
    def main():
        raise UserError("file.txt:\n  is broken; mend it.")

    assert command_line.run(ConfigFlags(""), main, []) == 1
    assert capsys.readouterr().err == "Error: file.txt: is broken; mend it.\n"


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


def test_an_interruption_says_what_the_job_knows_to_be_kept(capsys):
    def main():
        with kept_so_far("the model is kept, and the same command evaluates"):
            raise KeyboardInterrupt

    assert command_line.run(ConfigFlags(""), main, [], continues=True) == 130
    said = "\nInterrupted; the model is kept, and the same command evaluates.\n"
    assert capsys.readouterr().err == said


NO_UTF_8 = b"caf\xe9"


@pytest.mark.parametrize(
    "words", ["--name={}", "--name {}", "--kinds=a,{}", "--name=x {}", "--{}=x"]
)
def test_a_text_that_is_not_utf_8_is_refused_by_every_flag(words, capsys):
    flag_set, _ = flag_set_of_all_kinds()
    arguments = words.format(os.fsdecode(NO_UTF_8)).split()
    assert command_line.run(flag_set, lambda: None, arguments) == 1
    error = capsys.readouterr().err
    assert r"caf\xe9" in error
    assert "is not in UTF-8; type it anew." in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["input_file", "output_dir", "model", "init_checkpoint", "output"])
def test_the_name_of_a_file_may_be_any_bytes(name):
    flag_set = ConfigFlags("Reads.")
    holder = flag_set.define(name, str, None, "A name.")
    flag_set.parse([f"--{name}={os.fsdecode(NO_UTF_8)}"])
    assert os.fsencode(holder.value) == NO_UTF_8


def works_with_backend(monkeypatch, backend):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    return command_line.run(ConfigFlags("Works."), lambda: None, [])


@pytest.mark.parametrize(
    "backend", ["openvino", "torch", "jax", "TensorFlow", "nonsense", "\x1b[31m"]
)
def test_a_tool_computes_with_tensorflow_or_says_why_not(backend, monkeypatch, capsys):
    assert works_with_backend(monkeypatch, backend) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"Error: KERAS_BACKEND={escaped(backend)}: the tools compute with T")
    assert error.count("\n") == 1


def test_keras_own_file_does_not_choose_for_a_tool(monkeypatch):
    assert works_with_backend(monkeypatch, "") == 0
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


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


def test_a_flag_for_texts_may_be_given_several_times_and_survives_a_flagfile(tmp_path):
    flag_set = ConfigFlags("Reads.")
    texts = flag_set.define(
        "text", list, None, "A text; may be given several times.", separated=False
    )
    flag_set.parse(["--text=one, two", "--text=three"])
    assert texts.value == ["one, two", "three"]
    (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile())
    again = ConfigFlags("Reads.")
    repeated = again.define(
        "text", list, None, "A text; may be given several times.", separated=False
    )
    again.parse([f"--flagfile={tmp_path / 'flags.cfg'}"])
    assert repeated.value == ["one, two", "three"]


def several_flags():
    """Every flag of every tool that holds several items."""
    for tool in tool_names():
        for flag in importlib.import_module(f"tools.{tool}").FLAGS.lists():
            yield pytest.param(tool, flag.name, id=f"{tool}-{flag.name}")


@pytest.mark.parametrize(("tool", "name"), several_flags())
def test_every_flag_for_several_items_given_twice_has_all_of_them_and_so_has_its_flagfile(
    tool, name, tmp_path
):
    flag_set = importlib.import_module(f"tools.{tool}").FLAGS
    missing = re.findall(r"--(\w+).* \(required\)", flag_set.help_text())
    needed = [f"--{one}=x" for one in missing if one != name]
    first, second = 'one, two,"3, ""4"" ",', '  "five"'
    flag_set.parse([*needed, f"--{name}={first}", f"--{name}={second}"])
    (flag,) = (one for one in flag_set.lists() if one.name == name)
    items = ["one", "two", '3, "4" ', "", "five"] if flag.separated else [first, second]
    assert flag_set.value_of(name) == items

    (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile())
    flag_set.parse([f"--flagfile={tmp_path}/flags.cfg"])
    assert flag_set.value_of(name) == items


@pytest.mark.parametrize("tool", tool_names())
def test_no_flag_takes_a_list_without_being_one(tool):
    flag_set = importlib.import_module(f"tools.{tool}").FLAGS
    several = {flag.name for flag in flag_set.lists()}
    for name, sentence in re.findall(r"  --(\w+).*\n {6}(.*(?:\n {6}.*)*)", flag_set.help_text()):
        if "separated by commas" in sentence or "given several times" in sentence:
            assert name in several


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


def test_a_flag_file_that_names_itself_is_refused(tmp_path):
    (tmp_path / "flags.cfg").write_text(f"--flagfile={tmp_path}/flags.cfg\n")
    with pytest.raises(UserError, match="names itself"):
        flag_set_of_all_kinds()[0].parse([f"--flagfile={tmp_path}/flags.cfg"])


@pytest.mark.parametrize(
    "value", [" a", "a ", '" a"', '"a"', '""" ""', '"', "a,b", "# a", "a=b", "Wörter\u2028ゑ", "\r"]
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


def test_quotation_marks_that_enclose_no_whole_item_are_one_sentence(capsys):
    flag_set, _ = flag_set_of_all_kinds()
    assert command_line.run(flag_set, lambda: None, ["--name=x", '--kinds="a,b']) == 1
    assert capsys.readouterr().err.startswith("Error: --kinds: '\"a,b' is no list: ")


def test_help_says_once_how_lists_are_given():
    assert flag_set_of_all_kinds()[0].help_text().count("Flags that hold a list: commas") == 1
    assert "hold a list" not in ConfigFlags("Does nothing.").help_text()


def test_a_second_command_line_in_one_process_starts_from_the_defaults():
    flag_set, holders = flag_set_of_all_kinds()
    flag_set.parse(["--name=x", "--count=9"])
    flag_set.parse(["--name=y"])
    assert (holders["name"].value, holders["count"].value) == ("y", 3)


def test_what_tensorflow_says_of_compiling_is_for_programmers(capsys):
    def says():
        for line in ("5 out of 8 calls triggered tf.function retracing.", "The disk is full."):
            logging.getLogger("tensorflow").warning(line)

    assert command_line.run(ConfigFlags("Says."), says, []) == 0
    assert capsys.readouterr().err.splitlines() == ["The disk is full."]


def test_a_warning_is_shown_once_and_what_is_logged_each_time(capsys):
    log = logging.getLogger("pipelines.some")

    def work():
        for _ in range(2):
            log.warning("a row has no text")
            log.info("read")

    command_line.run(ConfigFlags("Does things."), work, [])
    assert capsys.readouterr().err.splitlines() == ["a row has no text", "read", "read"]
