"""The contract of tasks, kept by a toy task: windows, whole-example scoring, a served form."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.serving.export import export_saved_model
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.run import fine_tune
from pipelines.tasks.register import SERVED_TASKS, open_and_serve, open_task_model
from tests.support import run_toy, toy_task
from tests.support.model_folders import WORDS, write_classifier, write_start
from tests.support.toy_task import ToyTask
from tests.test_architecture import modules_in


def write_split(folder, split, count, seed, sizes=range(1, 31)):
    """Texts of so many words; every second one has the word "value" at one position."""
    draw = np.random.default_rng(seed)
    lines = ["text\tlabel\n"]
    for number in range(count):
        words = draw.choice([word for word in WORDS[:7] if word != "value"], draw.choice(sizes))
        if number % 2:
            words[draw.integers(len(words))] = "value"
        lines.append(f"{' '.join(words)}\t{'yes' if number % 2 else 'no'}\n")
    (folder / f"{split}.tsv").write_text("".join(lines))


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_split(folder, "train", 200, seed=1, sizes=[3, 29])  # each length of a batch costs time
    write_split(folder, "dev", 60, seed=2)
    return ToyTask(folder)


@pytest.fixture(scope="module")
def toy_run(toy, tmp_path_factory):
    """One run of the toy task, for all who look at what it left."""
    folder = tmp_path_factory.mktemp("run")
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = write_start(folder / "encoder", **rates)
    training = TrainingConfig(
        learning_rate=4e-3, num_train_steps=1, num_warmup_steps=0, train_batch_size=16
    )
    config = FineTuningConfig(
        output_dir=folder / "run",
        init_checkpoint=str(encoder),
        do_train=True,
        do_eval=True,
        do_predict=True,
        max_seq_length=10,
        eval_batch_size=64,
        predict_batch_size=64,
        num_train_epochs=6.0,
        training=training,
    )
    return config, fine_tune(config, lambda _: toy)


def test_long_texts_are_scored_as_wholes(toy_run):
    _, results = toy_run
    assert results.training.finished
    # Most "value"s stand after the first window.
    assert results.evaluation["eval_accuracy"] > 0.9


def test_every_example_has_one_answer(toy_run, toy):
    config, results = toy_run
    assert results.prediction_files == [config.output_dir / "answers.txt"]
    assert (
        len((config.output_dir / "answers.txt").read_text().splitlines())
        == len(list(toy.examples("dev")))
        == 60
    )


def test_the_model_directory_knows_what_serving_needs(toy_run):
    config, _ = toy_run
    written = json.loads((config.output_dir / "model" / "config.json").read_text())
    settings = written["task_specific_params"]["keras_bert_impl"]
    assert settings == {"task": "toy", "max_seq_length": 10, "doc_stride": 3}


# Served answers, held to those of the offline predictions


def offline_scores(config):
    return [float(line) for line in (config.output_dir / "answers.txt").read_text().splitlines()]


def test_served_answers_are_the_offline_ones(toy_run, toy):
    config, _ = toy_run
    opened = open_task_model(config.output_dir / "model", toy)
    served = toy.served(opened, None)
    texts = [example.text for example in toy.examples("dev")]
    found = served.call("text", {"text": texts})["score"].numpy()
    np.testing.assert_allclose(found, offline_scores(config), atol=1e-5)


def test_a_model_directory_is_exported_by_its_task(toy_run, toy, tmp_path, monkeypatch):
    config, _ = toy_run
    tasks = {"toy": lambda model: ToyTask(toy.data_dir, task_settings(model)["doc_stride"])}
    monkeypatch.setattr("pipelines.tasks.register.SERVED_TASKS", tasks)
    opened, served = open_and_serve(config.output_dir / "model")
    assert task_settings(opened.model.config)["task"] == "toy"
    result = export_saved_model(served, opened, tmp_path / "saved")
    assert result.signatures == {"text": (("text",), ("score",))}
    assert result.verification.largest_difference < 1e-5
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    texts = tf.constant([example.text for example in toy.examples("dev")])
    found = loaded.signatures["text"](text=texts)["score"]
    np.testing.assert_allclose(found, offline_scores(config), atol=1e-5)


def test_a_new_family_is_its_folder_a_thin_tool_and_a_line_of_the_register(
    toy_run, toy, tmp_path, capsys, monkeypatch
):
    config, results = toy_run
    places = {Path(module.__file__) for module in (toy_task, run_toy)}
    for path in places:
        imported = modules_in(path)
        # Shared rooms only: what it needed of another family would be a fourth place.
        assert not any(name.startswith("pipelines.tasks") for name in imported), path
    assert Path(run_toy.__file__).read_text().count("\n") < 50
    run = shutil.copytree(config.output_dir, tmp_path / "run")
    flags = ["--do_eval", f"--data_dir={toy.data_dir}", f"--output_dir={run}"]
    assert run_toy.main(flags) == 0
    (line,) = re.findall("eval_accuracy = (.*)", capsys.readouterr().out)
    assert float(line) == pytest.approx(results.evaluation["eval_accuracy"])
    monkeypatch.setitem(SERVED_TASKS, toy.name, lambda _: toy)
    _, served = open_and_serve(run / "model")
    assert [*served.specs] == ["text"]


def test_what_the_directory_does_not_say_is_taken_from_the_config(
    toy_run, toy, tmp_path, monkeypatch
):
    config, _ = toy_run
    monkeypatch.setattr("pipelines.tasks.register.SERVED_TASKS", {"toy": lambda _model: toy})
    folders = {
        "toy": shutil.copytree(config.output_dir / "model", tmp_path / "toy"),
        "classifier": write_classifier(tmp_path / "classifier", ["no", "yes"]),
    }
    for name, folder in folders.items():
        whole, _ = open_and_serve(folder)
        vocabulary = shutil.move(folder / "vocab.txt", tmp_path / f"{name}.txt")
        (folder / "tokenizer_config.json").unlink()
        description = {"vocab_file": vocabulary, "do_lower_case": whole.text.do_lower_case}
        assert open_and_serve(folder, **description)[0].text == whole.text
