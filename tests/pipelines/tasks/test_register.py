"""Served answers of a task, held to those of its offline predictions."""

import ast
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.serving.export import export_saved_model
from pipelines.tasks.register import SERVED_TASKS, open_and_serve, open_task_model
from tests.support import run_toy, toy_task
from tests.support.model_folders import (
    write_classifier,
)
from tests.support.toy_task import ToyTask
from tests.test_architecture import FAMILIES, ROOT, imported_modules, tree_of


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
        imported = imported_modules(ast.walk(tree_of(path)))
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


@pytest.mark.parametrize("family", FAMILIES)
def test_the_register_has_a_family_once_and_by_its_own_name(family):
    text = (ROOT / "pipelines/tasks/register.py").read_text(encoding="utf-8")
    name = next(iter(re.findall(rf"from pipelines.tasks.{family}.task import (\w+)", text)), None)
    served = (ROOT / f"pipelines/tasks/{family}/served.py").exists()
    assert (name is not None) == served  # the library serves what has no form of its own
    if name is not None:
        (made,) = [made for made in SERVED_TASKS.values() if made.__self__.__name__ == name]
        assert SERVED_TASKS[made.__self__.name] is made


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
