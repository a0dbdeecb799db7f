import json
from dataclasses import replace

import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from pipelines.adaptation.job import Steps, adapt
from tests.support.adaptation import (
    PretendingTrainers,
    language,
    toy_adaptation,
)


def kept_files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and "cells" not in path.parts)
    return {path.relative_to(folder): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """A finished adaptation with a task: its config, what was started, and its results."""
    folder = tmp_path_factory.mktemp("whole")
    rows = "text\tlabel\na\tx\nb\ty\n"
    (folder / "rows.tsv").write_text(rows)
    task = f"run_classifier --train_file={folder}/rows.tsv --dev_file={folder}/rows.tsv"
    config = toy_adaptation(folder, task=task)
    tools = PretendingTrainers()
    return config, tools, adapt(config, tools)


def test_the_model_has_the_words_of_the_text_and_stands_where_the_user_looks(adapted):
    config, _, results = adapted
    own, grown = (
        {*find_model(folder).text.vocabulary.tokens}
        for folder in (config.init_checkpoint, config.output_dir / "model")
    )
    assert len({*language()} & (grown - own)) > 18  # of 24; some only occur in held-out documents
    assert {path.name for path in results[1]} == {
        "model", "report.md", "adaptation.json", "learning_curve.png",
    }  # fmt: skip
    assert all(path.exists() for path in results[1])


def test_the_report_compares_before_and_after_on_text_and_task(adapted):
    config, _, _ = adapted
    values = json.loads((config.output_dir / "adaptation.json").read_text())
    losses = {name: one["figures"]["masked_lm_loss"] for name, one in values["text"].items()}
    assert losses == {"original": 3.0, "adapted": 2.0}
    cuts = {name: one["coverage"]["tokens_per_word"] for name, one in values["text"].items()}
    assert cuts["adapted"] < cuts["original"] / 2
    assert all("nats_per_character" in one["figures"] for one in values["text"].values())
    (task,) = values["task"]
    assert (task["name"], task["difference"]) == ("eval_accuracy", pytest.approx(0.2))
    assert values["steps"] == {"taken": 20, "best": 15}
    assert values["missing_heads"] == []


def test_a_second_call_starts_nothing_and_says_so(adapted):
    config, _, results = adapted
    before, again = kept_files(config.output_dir), PretendingTrainers()
    repeated = adapt(config, again)
    assert again.started == []
    assert repeated == results
    assert kept_files(config.output_dir) == before


@pytest.mark.parametrize("tool", ["split_sentences", "run_pretraining"])
def test_after_a_stop_the_same_call_goes_on_to_the_same_model(tmp_path, tool):
    config, stopped, rest = toy_adaptation(tmp_path), PretendingTrainers(tool), PretendingTrainers()
    with pytest.raises(KeyboardInterrupt):
        adapt(config, stopped)
    assert not (config.output_dir / "model").exists()
    adapt(config, rest)
    assert rest.started[0] == stopped.started[-1]
    assert (config.output_dir / "model" / "model.safetensors").exists()


def test_a_dry_run_lists_the_commands_and_writes_nothing(tmp_path):
    config = toy_adaptation(tmp_path, dry_run=True)
    tools = PretendingTrainers()
    lines, _ = adapt(config, tools)
    assert (tools.started, config.output_dir.exists()) == ([], False)
    assert [line.split()[0] for line in lines] == [
        "text", "data-original-held-out", "evaluated-original", "data-grown-held-out",
        "data-grown-train", "trained",
    ]  # fmt: skip
    assert all("\n    keras-bert " in line for line in lines)


TOOLS = PretendingTrainers()
CONFIG_OF = TOOLS.config_of


def steps_of(folder, **changes):
    config = toy_adaptation(folder, **changes)
    return Steps(config, find_model(config.init_checkpoint), grows=config.num_new_tokens > 0)


def test_every_command_is_one_that_its_tool_understands(tmp_path):
    steps = steps_of(tmp_path, task="run_classifier --train_file=a.tsv --dev_file=b.tsv")
    steps.check(TOOLS)
    asked = CONFIG_OF("run_pretraining", steps.trained.arguments)
    assert asked.training.early_stopping_evals == 3
    assert asked.training.save_best
    assert [command.name for command in steps.commands()] == [
        "text", "data-original-held-out", "evaluated-original",
        *(f"task-original-seed-{seed}" for seed in (1, 2, 3)),
        "data-grown-held-out", "data-grown-train", "trained",
        *(f"task-adapted-seed-{seed}" for seed in (1, 2, 3)),
    ]  # fmt: skip


def test_held_out_words_are_masked_whole_and_once_whatever_the_flags_of_the_data(tmp_path):
    steps = steps_of(tmp_path, data_flags="--dupe_factor=9 --masked_lm_prob=0.2")
    train, held_out = (
        CONFIG_OF("create_pretraining_data", steps.shards("grown", part).arguments).recipe
        for part in ("train", "held_out")
    )
    assert (train.dupe_factor, train.masking) == (9, "dynamic")
    assert (held_out.dupe_factor, held_out.masking) == (1, "static")
    assert train.do_whole_word_mask
    assert train.masked_lm_prob == held_out.masked_lm_prob == 0.2


def test_new_heads_learn_alone_before_the_encoder_that_has_learned(tmp_path):
    steps = replace(steps_of(tmp_path), lacks_words=True)
    steps.check(TOOLS)
    names = [command.name for command in steps.commands()]
    assert names.index("heads") + 1 == names.index("trained")
    heads, trained = (
        CONFIG_OF("run_pretraining", steps.commands()[names.index(name)].arguments)
        for name in ("heads", "trained")
    )
    assert (heads.train_encoder, trained.train_encoder) == (False, True)
    assert heads.training.num_train_steps == 2  # a tenth of all
    assert heads.init_checkpoint == str(steps.start / "model")
    assert trained.init_checkpoint == str(steps.heads.folder / "model")
    assert heads.training.bias_correction
    assert trained.training.bias_correction
