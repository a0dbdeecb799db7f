import json
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import with_bilstm
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.learning_curve import Guess
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.start import (
    check_run,
    check_trained,
    check_vocabulary,
    starting_point,
    tell_of_nothing_learned,
    with_kept_options,
)
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.questions.options import RunSquadConfig
from tests.support.model_folders import tiny_config, write_classifier
from tests.support.toy_task import ToyTask


def start_of(folder, **options):
    config = FineTuningConfig(output_dir=folder / "run", **options)
    return starting_point(config, RunDirectory.open(config.output_dir)).checkpoint


def test_the_runs_own_model_is_scored_where_there_is_one(tmp_path):
    given = write_classifier(tmp_path / "given", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == Path(given)
    own = write_classifier(tmp_path / "run" / "model", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == own
    assert start_of(tmp_path, init_checkpoint=str(given), do_train=True) == Path(given)


@pytest.mark.parametrize(
    ("rate", "options", "start", "is_high"),
    [
        (5e-4, {}, True, True),
        (4.9e-4, {}, True, False),
        (5e-3, {}, False, False),  # random weights
        (5e-3, {"optimizer": "lamb"}, True, False),
    ],
)
def test_a_rate_that_destroys_a_trained_encoder_is_warned_of(
    tmp_path, caplog, rate, options, start, is_high
):
    (tmp_path / "train.tsv").write_text("text\tlabel\nthe dog runs\tno\n")
    given = write_classifier(tmp_path / "given", ["no", "yes"])
    model = ["init_checkpoint"] if start else []
    config = FineTuningConfig(
        output_dir=tmp_path / "run",
        do_train=True,
        max_seq_length=8,
        training=TrainingConfig(learning_rate=rate, **options),
        bert_config_file=str(given / "config.json"),
        vocab_file=str(given / "vocab.txt"),
        **dict.fromkeys(model, str(given)),
    )
    check_run(config, lambda _: ToyTask(tmp_path))
    assert sum("`learning_rate=" in message for message in caplog.messages) == is_high


def trained(model_config=None, **settings):
    """A model whose directory keeps some settings."""
    config = with_task_settings(model_config or tiny_config(), {"task": "any", **settings})
    return ModelSource(Path("trained"), config, None)


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({}, 12),  # as it was trained
        ({"max_seq_length": 10}, 10),
        ({"max_seq_length": 128, "given": frozenset({"max_seq_length"})}, 128),  # the default
        ({"do_train": True}, 128),
    ],
)
def test_what_the_model_keeps_holds_unless_it_is_given(tmp_path, options, length):
    config = FineTuningConfig(output_dir=tmp_path, **options)
    assert with_kept_options(config, trained(max_seq_length=12)).max_seq_length == length


def test_options_of_nested_configs_hold_as_well(tmp_path, caplog):
    own = LabelledTextsConfig(test_file="new.csv")
    config = RunClassifierConfig(output_dir=tmp_path, own=own)
    settings = LongTexts(long_text="windows", doc_stride=100).settings
    settings |= {"label_column": ["rude", "toxic"], "text_column": "review"}
    with caplog.at_level(logging.INFO):
        found = with_kept_options(config, trained(**settings))
    assert found.long_texts == LongTexts(long_text="windows", doc_stride=100)
    assert found.own == replace(own, label_column=("rude", "toxic"), text_column="review")
    assert caplog.messages == [
        "as trained was trained: text_column = review, label_column = rude,toxic, "
        "long_text = windows, doc_stride = 100"
    ]


def test_an_option_that_stands_against_the_model_is_told(tmp_path, caplog):
    given = frozenset({"n_best_size", "doc_stride"})
    config = RunSquadConfig(output_dir=tmp_path, n_best_size=20, doc_stride=64, given=given)
    model = trained(n_best_size=5, doc_stride=64, max_answer_length=9)
    found = with_kept_options(config, model)
    assert (found.n_best_size, found.max_answer_length) == (20, 9)
    warned = [one.message for one in caplog.records if one.levelno >= logging.WARNING]
    assert warned == [
        "`n_best_size=20` replaces 5, with which trained was trained and is served; "
        "served answers may differ from those of this run."
    ]


def test_what_is_a_part_of_the_model_cannot_be_another(tmp_path):
    files = {"own": LabelledTextsConfig(test_file="new.csv")}
    config = RunClassifierConfig(output_dir=tmp_path, given=frozenset({"encoder_bilstm"}), **files)
    with pytest.raises(UserError, match="`encoder_bilstm=False`: trained was trained with True"):
        with_kept_options(config, trained(with_bilstm(tiny_config(), True)))
    numbers = {"own": LabelledTextsConfig(test_file="new.csv", regression=True)}
    with pytest.raises(UserError, match="`regression=True`: trained was trained with False"):
        with_kept_options(
            RunClassifierConfig(output_dir=tmp_path, **numbers),
            trained(tiny_config(extra={"problem_type": "single_label_classification"})),
        )


def labels_of(**options):
    return RunClassifierConfig(
        output_dir=Path("run"), own=LabelledTextsConfig(train_file="t.csv", **options)
    )


def questions_of(**options):
    return RunSquadConfig(output_dir=Path("run"), train_file=Path("t.json"), **options)


@pytest.mark.parametrize("config_of", [labels_of, questions_of])
@pytest.mark.parametrize(("share", "seed", "odd"), [(0.2, 3, "share=0.2"), (0.1, 4, "seed=4")])
def test_a_dev_set_with_training_rows_is_refused(config_of, share, seed, odd):
    config = config_of(dev_share=share, dev_seed=seed)
    with pytest.raises(UserError, match=f"`dev_{odd}`: trained was trained with"):
        with_kept_options(config, trained(dev_share=0.1, dev_seed=3))
    with pytest.raises(UserError, match=r"`dev_share=0\.\d`: trained was trained with 0\.0"):
        with_kept_options(config, trained())
    assert with_kept_options(config, trained(dev_share=share, dev_seed=seed)) == config


def test_the_texts_of_every_split_are_held_against_the_vocabulary(tmp_path):
    task = ToyTask(tmp_path)
    (tmp_path / "train.tsv").write_text("text\tlabel\na cat sleeps the value\tyes\n")
    strange = Vocabulary([*SPECIAL_TOKENS, "비", "value"], "strange.txt")
    (tmp_path / "dev.tsv").write_text("text\tlabel\n" + "a cat sleeps\tno\n" * 20)
    check_vocabulary(task, ["train"], TextSettings(strange), UnknownWords())  # few words
    with pytest.raises(UserError, match=r"dev\.tsv: 100\.0 % of the words .* with strange\.txt"):
        check_vocabulary(task, ["train", "dev"], TextSettings(strange), UnknownWords())


def configured(*labels):
    names = {str(number): label for number, label in enumerate(labels)}
    return tiny_config(extra={"id2label": names})


def opened(folder, model=None):
    directory = RunDirectory.open(folder / "run")
    options = {"init_checkpoint": str(model)} if model else {}
    start = starting_point(FineTuningConfig(output_dir=directory.path, **options), directory)
    return directory, start


def test_the_same_labels_in_the_same_order_are_needed(tmp_path):
    directory, start = opened(tmp_path, write_classifier(tmp_path / "model", ["no", "yes"]))
    check_trained(directory, start, configured("No", "Yes"), "toy")
    with pytest.raises(UserError, match="its labels are no, yes, but those of toy are yes, no"):
        check_trained(directory, start, configured("yes", "no"), "toy")


def test_unnamed_labels_are_those_of_the_task_where_there_are_as_many(tmp_path):
    """A published model whose `num_labels` is right and whose `id2label` is that of another one."""
    model = write_classifier(tmp_path / "model", ["a", "b", "c"])
    path = model / "config.json"
    stale = {"num_labels": 3, "id2label": {"0": "bad", "1": "good"}}
    path.write_text(json.dumps({**json.loads(path.read_text()), **stale}))
    directory, start = opened(tmp_path, model)
    assert start.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    check_trained(directory, start, configured("no", "yes", "may be"), "toy")
    with pytest.raises(UserError, match="its labels are label_0, label_1, label_2, but those of"):
        check_trained(directory, start, configured("no", "yes"), "toy")


@pytest.mark.parametrize(
    ("score", "is_told"), [(0.7, False), (0.5, True), (0.2, True), (float("nan"), True)]
)
def test_a_figure_that_guessing_reaches_is_told(caplog, score, is_told):
    guesses = {"f1": Guess("always yes", 0.5)}
    task = SimpleNamespace(compared_figures=("f1",))
    tell_of_nothing_learned(task, "dev", {"accuracy": 0.1, "f1": score}, guesses)
    assert ("where one answer to every example reaches 0.5000" in caplog.text) == is_told
