"""The contract of tasks, kept by a toy task: windows, whole-example scoring, a served form."""

import json


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
