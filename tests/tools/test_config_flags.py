from dataclasses import dataclass
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import ONCE, REQUIRED, check_options, nested, option
from keras_bert_impl.training.config import TrainingConfig
from tools import command_line
from tools.config_flags import ConfigFlags, add_tpu_flags
from tools.table import tool_named, tool_names


@dataclass(frozen=True, kw_only=True)
class Stage:
    max_length: int | None = option(None, "The longest.", at_least=5)
    rates: tuple[float, ...] = option((0.5, 0.25), "Some rates.")

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class Trip:
    init_checkpoint: str = option(REQUIRED, "Where to start.")
    folder: Path | None = option(None, "Where to go.")
    seed: int = option(12345, "Fixes it.", at_least=0)
    rate: float = option(1e-4, "How fast.", more_than=0)
    fast: bool = option(True, "Hurry.")
    lower: bool | None = option(None, "Lower-case.")
    form: str = option("text", "How to write.", choices=("text", "json"))
    words: tuple[str, ...] = option((), "Some words.")
    steps: tuple[int, int] | None = option(None, "Two steps.")
    texts: tuple[str, ...] = option((), "Texts.", repeated=True)
    names: str = option("", "Names.", listed=True)
    dry_run: bool = option(False, "Only try.", resume=ONCE)
    flags: str = ""
    first: Stage = nested(Stage)
    second: Stage = nested(Stage, prefix="second_", defaults={"max_length": 512})

    def __post_init__(self):
        check_options(self)


def config(*words):
    flags = ConfigFlags("Travels.", Trip)
    flags.parse(["--init_checkpoint=x", *words])
    return flags.config()


def said(*words):
    """What a user reads of a mistake."""
    flags = ConfigFlags("Travels.", Trip)
    try:
        flags.parse(["--init_checkpoint=x", *words])
        flags.config()
    except UserError as error:
        return flags.in_flags(str(error))
    return ""


def test_without_flags_the_config_has_its_own_defaults():
    assert config() == Trip(init_checkpoint="x", second=Stage(max_length=512))


def test_every_type_is_read():
    assert config(
        "--folder=a/b", "--seed=3", "--rate=2", "--nofast", "--lower=false", "--form=json",
        "--words=a,b", "--names=n", '--names="o,p"', "--steps=100", "--steps=110",
        "--texts=one, two", "--texts=three", "--dry_run", "--max_length=7", "--second_rates=1,2",
    ) == Trip(
        init_checkpoint="x", folder=Path("a/b"), seed=3, rate=2.0, fast=False, lower=False,
        form="json", words=("a", "b"), names='n,"o,p"', steps=(100, 110),
        texts=("one, two", "three"),
        dry_run=True, first=Stage(max_length=7), second=Stage(max_length=512, rates=(1.0, 2.0)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("--seed=-1", "--seed=-1 must be 0 or more."),
        ("--rate=0", "--rate=0.0 must be more than 0."),
        ("--max_length=4", "--max_length=4 must be 5 or more."),
        ("--second_max_length=4", "--second_max_length=4 must be 5 or more."),
        ("--steps=1,b", "--steps=1,b: give whole numbers separated by commas."),
        (
            "--second_rates=a",
            "--second_rates=a: give numbers separated by commas such as 0.5,0.25.",
        ),
    ],
)
def test_a_bad_value_is_refused_by_the_flag_that_holds_it(word, sentence):
    assert said(word) == sentence


def test_messages_of_the_library_are_shown_with_flags():
    flags = ConfigFlags("Travels.", Trip)
    assert flags.in_flags("`second.max_length=9` is more than `first.max_length`.") == (
        "--second_max_length=9 is more than --max_length."
    )
    assert flags.in_flags("`model` is missing; add `lower=True` or `lower=False`.") == (
        "--init_checkpoint is missing; add --lower or --nolower."
    )
    assert flags.in_flags("`other=9` is not ours.") == "`other=9` is not ours."


def test_what_the_library_logs_warns_of_and_refuses_is_shown_with_flags(capsys):
    def main():
        import logging
        import warnings

        logging.getLogger("pipelines").info("`seed` is used.")
        warnings.warn("`rate` is high.", stacklevel=1)
        raise UserError("`folder` is missing.")

    flags = ConfigFlags("Travels.", Trip)
    assert command_line.run(flags, main, ["--init_checkpoint=x"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "--seed is used.",
        "Warning: --rate is high.",
        "Error: --folder is missing.",
    ]


@pytest.mark.parametrize("name", ["init_checkpoint", "model", "model_dir"])
def test_the_model_is_understood_by_each_of_its_names(name):
    flags = ConfigFlags("Travels.", Trip)
    flags.parse([f"--{name}=bert", "--random_seed=3"])
    assert (flags.config().init_checkpoint, flags.config().seed) == ("bert", 3)
    assert "--init_checkpoint=bert\n" in flags.as_flagfile()
    assert "--seed=3\n" in flags.as_flagfile()


def test_the_flagfile_repeats_the_run_but_for_what_is_about_one_call(tmp_path):
    words = ["--nofast", "--steps=1,2", "--texts=a, b", "--texts=c", "--second_max_length=9"]
    flags = ConfigFlags("Travels.", Trip)
    flags.parse(["--init_checkpoint=x", "--dry_run", *words])
    (tmp_path / "flags.cfg").write_text(flags.as_flagfile())
    again = ConfigFlags("Travels.", Trip)
    again.parse([f"--flagfile={tmp_path}/flags.cfg"])
    assert again.config() == config(*words)


def test_help_shows_the_sentences_defaults_and_other_names():
    text = ConfigFlags("Travels.", Trip).help_text()
    for line in (
        "--init_checkpoint (required) (also --model, --model_dir)\n      Where to start.",
        "--seed (default 12345) (also --random_seed)\n      Fixes it.",
        "--rates (default 0.5,0.25)",
        "--second_max_length (default 512)",
    ):
        assert line in text


@pytest.mark.parametrize("tool", tool_names())
def test_no_help_names_a_default_that_is_nothing(tool):
    assert "(default )" not in tool_named(tool).flags.help_text()


def training(*words):
    """The configuration that a tool which trains makes of its flags."""
    flags = ConfigFlags("Trains.", TrainingConfig)
    try:
        flags.parse(words)
        return flags.config()
    except UserError as error:
        raise UserError(flags.in_flags(str(error))) from error


@pytest.mark.parametrize(
    "word", ["--clip_norm=0", "--clip_norm=-1", "--clip_norm=nan", "--weight_decay=-0.1",
             "--layer_decay=0"]
)  # fmt: skip
def test_numbers_that_would_quietly_spoil_a_run_are_refused(word):
    with pytest.raises(UserError, match=word.split("=")[0]):
        training(word)


def test_every_flag_reaches_the_configuration():
    given = training(
        "--train_batch_size=8",
        "--optimizer=lamb",
        "--layer_decay=0.9",
        "--distribution_strategy=mirrored",
        "--num_logical_devices=2",
        "--use_xla",
        "--precision=bfloat16",
        "--recompute",
        "--stop_after_step=5",
    )
    assert (given.train_batch_size, given.optimizer, given.layer_decay) == (8, "lamb", 0.9)
    assert (given.distribution_strategy, given.num_logical_devices) == ("mirrored", 2)
    assert (given.use_xla, given.precision, given.recompute) == (True, "bfloat16", True)
    assert given.stop_after_step == 5


def test_seeds_change_the_mathematics_and_log_intervals_do_not():
    assert training("--log_steps=1").mathematics() == training("--log_steps=7").mathematics()
    assert training("--seed=1").mathematics() != training("--seed=2").mathematics()


@pytest.mark.parametrize(
    ("words", "strategy"),
    [
        ([], "one_device"),
        (["--use_tpu"], "tpu"),
        (["--use_tpu", "--tpu_name=a"], "tpu"),
        (["--nouse_tpu", "--master=local", "--num_tpu_cores=64"], "one_device"),
        (["--use_tpu=false", "--distribution_strategy=mirrored"], "mirrored"),
    ],
)
def test_the_originals_way_to_ask_for_a_tpu(words, strategy):
    flags = ConfigFlags("Trains.", TrainingConfig)
    add_tpu_flags(flags)
    flags.parse(words)
    assert flags.config().distribution_strategy == strategy


def test_a_tpu_and_another_strategy_exclude_each_other(tmp_path):
    flags = ConfigFlags("Trains.", TrainingConfig)
    add_tpu_flags(flags)
    flags.parse(["--distribution_strategy=tpu", "--use_tpu"])
    (tmp_path / "flags.cfg").write_text("--use_tpu\n")
    with pytest.raises(UserError, match="--use_tpu and --distribution_strategy=mirrored exclude"):
        flags.parse([f"--flagfile={tmp_path}/flags.cfg", "--distribution_strategy=mirrored"])


def test_the_word_after_a_flag_without_a_sign_is_its_value_whatever_it_looks_like():
    texts = ["-random_seed", "--model", "--flagfile=/x", "--", "--seed=3"]
    words = [word for text in texts for word in ("--texts", text)]
    assert config(*words, "-seed", "5", "--fast", "--form=json") == config(
        *(f"--texts={text}" for text in texts), "--seed=5", "--form=json"
    )


def test_a_list_in_a_flag_file_may_have_one_dash(tmp_path):
    (tmp_path / "flags.cfg").write_text('-names="a,b"\n--names="d,e"\n-texts=" f"\n')
    found = config(f"--flagfile={tmp_path}/flags.cfg")
    assert (found.names, found.texts) == ('"a,b","d,e"', (" f",))


def test_what_a_flag_file_is_not_is_told(tmp_path):
    for words in (["--flagfile="], ["--flagfile"]):
        assert said(*words) == "--flagfile is empty; write --flagfile=FILE."
    (tmp_path / "flags.cfg").write_text("--folder x y\n")
    wanted = "--folder x y is not a flag; write --folder=x y."
    assert said(f"--flagfile={tmp_path}/flags.cfg") == wanted


def test_a_path_without_a_name_is_none():
    with pytest.raises(UserError, match="`folder` is empty; give a path, or leave it out"):
        config("--folder=")


def test_words_that_are_not_utf_8_are_refused_but_for_names_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said("--texts=caf\udce9") == "--texts: 'caf\\udce9' is not UTF-8; write it in UTF-8."
    for name in ("caf\udce9", "a=\udce9"):
        Path(name).touch()
        assert config(f"--folder={name}").folder == config("--folder", name).folder == Path(name)
