import json
import signal
from dataclasses import replace

import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from pipelines.adaptation.job import adapt
from tests.support.adaptation import (
    PretendingTrainers,
    language,
    toy_adaptation,
    write_language,
    write_model,
)

pytestmark = pytest.mark.slow


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
    config = toy_adaptation(folder, task=task, task_seeds=2)
    tools = PretendingTrainers()
    return config, tools, adapt(config, tools)


def test_the_model_has_the_words_of_the_text_and_stands_where_the_user_looks(adapted):
    config, _, results = adapted
    own, grown = (
        {*find_model(folder).text.vocabulary.tokens}
        for folder in (config.init_checkpoint, config.output_dir / "model")
    )
    assert len({*language()} & (grown - own)) > 18  # of 24; some only occur in held-out documents
    assert {path.name for path in results.files} == {
        "model", "report.md", "adaptation.json", "learning_curve.png",
    }  # fmt: skip
    assert all(path.exists() for path in results.files)
    assert not results.already_finished


def test_the_report_compares_before_and_after_on_text_and_task(adapted):
    config, _, _ = adapted
    values = json.loads((config.output_dir / "adaptation.json").read_text())
    losses = {name: one["figures"]["masked_lm_loss"] for name, one in values["text"].items()}
    assert losses == {"original": 3.0, "grown": 4.0, "adapted": 2.0}
    cuts = {name: one["coverage"]["tokens_per_word"] for name, one in values["text"].items()}
    assert cuts["adapted"] == cuts["grown"] < cuts["original"] / 2
    nats = {name: one["figures"]["nats_per_character"] for name, one in values["text"].items()}
    assert nats["adapted"] == pytest.approx(nats["grown"] / 2)
    (task,) = values["task"]
    assert (task["name"], task["difference"]) == ("eval_accuracy", pytest.approx(0.2))
    assert values["steps"] == {"taken": 20, "best": 15}
    assert values["missing_heads"] == []


def test_the_task_is_tried_on_the_model_as_it_came_before_training_begins(adapted):
    _, tools, _ = adapted
    assert tools.started.index("task-original-seed-1") < tools.started.index("trained")


def test_a_second_call_starts_nothing_and_says_so(adapted):
    config, _, results = adapted
    before, again = kept_files(config.output_dir), PretendingTrainers()
    repeated = adapt(config, again)
    assert again.started == []
    assert repeated.already_finished
    assert repeated.lines == results.lines
    assert kept_files(config.output_dir) == before


def test_what_it_takes_is_said_until_training_begins_and_again_for_another_training(
    tmp_path, monkeypatch
):
    said = []

    def plan(config, *_):
        return said.append(config.num_train_steps) or []

    monkeypatch.setattr("pipelines.adaptation.job.plan_lines", plan)
    with pytest.raises(KeyboardInterrupt):
        adapt(toy_adaptation(tmp_path, num_train_steps=20), PretendingTrainers("grow_vocabulary"))
    for steps in (20, 20, 30):
        adapt(toy_adaptation(tmp_path, num_train_steps=steps), PretendingTrainers())
    assert said == [20, 20, 30]


@pytest.mark.parametrize("tool", ["create_pretraining_data", "grow_vocabulary", "run_pretraining"])
def test_after_a_stop_the_same_call_goes_on_to_the_same_model(tmp_path, tool):
    config, stopped, rest = toy_adaptation(tmp_path), PretendingTrainers(tool), PretendingTrainers()
    with pytest.raises(KeyboardInterrupt):
        adapt(config, stopped)
    assert not (config.output_dir / "model").exists()
    adapt(config, rest)
    assert rest.started[0] == stopped.started[-1]
    assert (config.output_dir / "model" / "model.safetensors").exists()


def test_a_run_that_was_asked_to_stop_is_named(tmp_path):
    class Terminated(PretendingTrainers):
        def run(self, tool, flags, log, cores):
            signal.raise_signal(signal.SIGTERM)
            return 143

    with pytest.raises(UserError, match=r"cells/text-\w+: the run text was stopped .*continues"):
        adapt(toy_adaptation(tmp_path), Terminated())


@pytest.mark.parametrize("name", ["google", "google/bert_model.ckpt"])
def test_google_s_checkpoints_are_adapted_as_well(tmp_path, name):
    write_model(tmp_path / "model")
    portable = read_portable(tmp_path / "model")
    write_portable(portable, tmp_path / "google" / "bert_model.ckpt", "google_tf1")
    adapt(toy_adaptation(tmp_path, init_checkpoint=str(tmp_path / name)), PretendingTrainers())
    adapted = find_model(tmp_path / "adapted" / "model")
    assert len(adapted.text.vocabulary) > len(portable.text.vocabulary)
    assert not json.loads((tmp_path / "adapted" / "adaptation.json").read_text())["missing_heads"]


def test_a_model_without_heads_is_said_to_have_got_them(tmp_path):
    write_model(tmp_path / "model", heads=False)
    tools = PretendingTrainers()
    adapt(toy_adaptation(tmp_path), tools)
    assert tools.started[-2:] == ["heads", "trained"]
    values = json.loads((tmp_path / "adapted" / "adaptation.json").read_text())
    assert values["missing_heads"] == ["masked words", "next sentences"]


def test_where_no_token_is_worth_it_training_goes_on_with_the_model_as_it_came(tmp_path):
    config, tools = toy_adaptation(tmp_path), PretendingTrainers()
    adapt(replace(config, words=replace(config.words, min_count=10**6)), tools)
    assert not [name for name in tools.started if "grown" in name]
    values = json.loads((tmp_path / "adapted" / "adaptation.json").read_text())
    assert values["new_tokens"] == 0
    assert set(values["text"]) == {"original", "adapted"}


def test_a_text_of_too_few_documents_is_one_sentence(tmp_path):
    write_language(tmp_path / "text.txt", 6)
    words = r"text.txt: only 1 document of the text is held out.*change `held_out_every=4`"
    with pytest.raises(UserError, match=words):
        adapt(toy_adaptation(tmp_path), PretendingTrainers())


def test_nothing_of_the_user_s_is_replaced(tmp_path):
    (tmp_path / "adapted" / "model").mkdir(parents=True)
    (tmp_path / "adapted" / "model" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="exists and is no model directory"):
        adapt(toy_adaptation(tmp_path), PretendingTrainers())


def test_a_dry_run_says_what_it_takes_and_writes_nothing(tmp_path):
    config = toy_adaptation(tmp_path, dry_run=True, num_train_steps=100, train_batch_size=8)
    lines = adapt(config, PretendingTrainers()).lines
    assert not config.output_dir.exists()
    assert [line.split()[0] for line in lines] == [
        "text", "tokens", "training", "evaluation", "memory", "disk",
    ]  # fmt: skip
    assert "at most 100 steps of 8 examples: 1m20s at 10.0 examples a second" in lines[2]
    assert "fewer where 3 evaluations" in lines[2]
