import logging

import pytest

from keras_bert_impl.errors import UserError
from tools import command_line


def flag_set_of_all_kinds():
    flag_set = command_line.FlagSet("Does things.\n\nExample: do --name=x")
    holders = {
        "name": flag_set.string("name", None, "The name of the thing.", required=True),
        "count": flag_set.integer("count", 3, "How many things.", lower_bound=1),
        "rate": flag_set.number("rate", 1e-4, "Things per second.", lower_bound=0),
        "fast": flag_set.switch("fast", True, "Be fast."),
        "form": flag_set.choice("form", "text", ["text", "json"], "How to write."),
        "kinds": flag_set.words("kinds", ["a"], "Which kinds."),
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
        (["--name=x", "--cuont=3"], "cuont"),
        (["--name=x", "--count=many"], "count"),
        (["--name=x", "--count=0"], "count"),
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

    assert command_line.run(command_line.FlagSet(""), main, []) == 1
    assert capsys.readouterr().err == "Error: file.txt: is broken; mend it.\n"


@pytest.mark.parametrize(
    ("continues", "said"),
    [(False, "\nInterrupted.\n"), (True, "\nInterrupted; the same command continues.\n")],
)
def test_an_interruption_is_no_traceback_and_promises_only_what_is_true(continues, said, capsys):
    def main():
        raise KeyboardInterrupt

    assert command_line.run(command_line.FlagSet(""), main, [], continues=continues) == 130
    assert capsys.readouterr().err == said


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        command_line.run(command_line.FlagSet(""), lambda: 1 / 0, [])


def test_a_flag_for_texts_may_be_given_several_times_and_survives_a_flagfile(tmp_path):
    flag_set = command_line.FlagSet("Reads.")
    texts = flag_set.texts("text", "A text; may be given several times.")
    flag_set.parse(["--text=one, two", "--text=three"])
    assert texts.value == ["one, two", "three"]
    (tmp_path / "flags.cfg").write_text(flag_set.as_flagfile())
    again = command_line.FlagSet("Reads.")
    repeated = again.texts("text", "A text; may be given several times.")
    again.parse([f"--flagfile={tmp_path / 'flags.cfg'}"])
    assert repeated.value == ["one, two", "three"]


def test_a_second_command_line_in_one_process_starts_from_the_defaults():
    flag_set, holders = flag_set_of_all_kinds()
    flag_set.parse(["--name=x", "--count=9"])
    flag_set.parse(["--name=y"])
    assert (holders["name"].value, holders["count"].value) == ("y", 3)


def test_what_tensorflow_says_of_compiling_is_for_programmers(capsys):
    def says():
        for line in ("5 out of 8 calls triggered tf.function retracing.", "The disk is full."):
            logging.getLogger("tensorflow").warning(line)

    assert command_line.run(command_line.FlagSet("Says."), says, []) == 0
    assert capsys.readouterr().err.splitlines() == ["The disk is full."]
