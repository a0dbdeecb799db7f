import dataclasses
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.names import all_names
from keras_bert_impl.checkpoints.sources import read_weight
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import AdapterConfig
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.row_set import Split
from pipelines.fine_tuning.run import TracedModel, fine_tune
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from tests.support.glue_files import write_cola, write_sts
from tests.support.labelled_files import write_numbers
from tests.support.model_folders import write_classifier, write_start
from tests.support.tiny_bert import GOLDEN

run_classifier = partial(fine_tune, task_of=task_of)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return write_start(tmp_path_factory.mktemp("encoder") / "model", **rates)


@pytest.fixture(scope="module")
def cola(tmp_path_factory):
    return write_cola(tmp_path_factory.mktemp("cola"))


def configuration(data_dir, output_dir, epochs=2.0, training=(), **changes):
    options = {"learning_rate": 1e-2, "train_batch_size": 8, "log_steps": 1, **dict(training)}
    return RunClassifierConfig(
        **{
            "task_name": "CoLA",
            "data_dir": Path(data_dir),
            "output_dir": Path(output_dir),
            "max_seq_length": 12,
            "num_train_epochs": epochs,
            "eval_batch_size": 16,
            "trim_padding": False,  # each length of a batch costs seconds of tracing
            "training": TrainingConfig(num_train_steps=1, num_warmup_steps=0, **options),
            **changes,
        }
    )


def test_runs_of_one_command_share_what_was_traced_and_each_ends_as_if_it_were_alone(
    cola, tmp_path
):
    start = write_start(tmp_path / "start")  # which has dropout
    shared = TracedModel()

    def run(folder, traced=None, **training):
        training |= {"ema_decay": 0.9, "kernels": "plain"}
        config = configuration(
            cola,
            tmp_path / folder,
            training=training,
            init_checkpoint=str(start),
            do_train=True,
            do_eval=True,
        )
        return run_classifier(config, traced=traced)

    run("first", shared)
    other = {"seed": 2, "learning_rate": 1e-3, "train_batch_size": 6}
    together, alone = run("together", shared, **other), run("alone", **other)
    assert together.evaluation == alone.evaluation
    weights, same = (
        (tmp_path / name / "model" / "model.safetensors").read_bytes()
        for name in ("together", "alone")
    )
    assert weights == same
    _, step = shared.state.step_of
    assert step._one.experimental_get_tracing_count() == 2  # once for each batch
    assert shared.predict._outputs.experimental_get_tracing_count() == 1
    write_start(tmp_path / "start", initializer_range=0.3)  # another model in its place
    with pytest.raises(UserError, match="`init_checkpoint_content` was"):
        run("alone", **other)


@pytest.mark.slow
def test_training_scoring_and_answering_leave_their_files(encoder, cola, tmp_path):
    out = tmp_path / "run"
    config = configuration(
        cola,
        out,
        epochs=20.0,
        init_checkpoint=str(encoder),
        do_train=True,
        do_eval=True,
        do_predict=True,
        flags="--task_name=CoLA\n",
    )
    results = run_classifier(config)
    assert (results.training.step, results.training.finished) == (60, True)
    assert results.evaluation["eval_accuracy"] == 1.0  # the task can be learned
    assert results.evaluation["eval_matthews_correlation"] == 1.0
    figures = dict(
        line.split(" = ") for line in (out / "eval_results.txt").read_text().splitlines()
    )
    assert set(figures) == {
        "eval_accuracy",
        "eval_loss",
        "eval_matthews_correlation",
        "global_step",
    }
    kept = json.loads((out / "guesses.json").read_text())  # half of the sentences are acceptable
    guess = {"words": "always the most frequent class", "value": 0.5}
    assert kept == {"accuracy": guess, "matthews_correlation": {**guess, "value": 0.0}}
    assert results.guesses["eval_accuracy"]._asdict() == guess
    probabilities = np.loadtxt(out / "test_results.tsv", delimiter="\t")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    answers = [line.split("\t")[1] for line in (out / "CoLA.tsv").read_text().splitlines()[1:]]
    assert answers == [str(number) for number in probabilities.argmax(axis=1)]
    assert answers == ["0", "1", "0", "1", "0"]
    labels = json.loads((out / "model" / "config.json").read_text())["id2label"]
    assert labels == {"0": "unacceptable", "1": "acceptable"}
    assert (out / "flags.cfg").read_text() == "--task_name=CoLA\n"

    again = run_classifier(config)
    assert again.training.resumed_from == 60
    assert again.evaluation == results.evaluation

    # The model directory alone scores the same, from the run's folder or from anywhere.
    scored = run_classifier(configuration(cola, out, do_eval=True))
    assert scored.evaluation == pytest.approx(
        {k: v for k, v in results.evaluation.items() if k != "global_step"}
    )
    elsewhere = configuration(
        cola, tmp_path / "x", init_checkpoint=str(out / "model"), do_eval=True
    )
    assert run_classifier(elsewhere).evaluation == pytest.approx(scored.evaluation)


def test_pairs_need_a_model_of_two_segments(tmp_path):
    model = write_start(tmp_path / "model", type_vocab_size=1)
    pairs = write_sts(tmp_path / "sts")
    options = {"task_name": "STS-B", "init_checkpoint": str(model), "do_train": True}
    with pytest.raises(UserError, match="type_vocab_size is 1: the model reads single texts; giv"):
        run_classifier(configuration(pairs, tmp_path / "run", **options))
    assert not (tmp_path / "run" / "model").exists()


def weights_of(folder):
    """The weights of a model of one layer, by our names."""
    source = find_model(folder).tensors()
    found = {row.ours: source.find(row) for row in all_names(1, ("classifier",))}
    return {path: read_weight(source, hit) for path, hit in found.items() if hit}


@pytest.mark.slow
def test_a_run_of_adapters_in_instalments_ends_where_one_in_one_go_ends(encoder, cola, tmp_path):
    adapters = AdapterConfig(lora_rank=2, lora_targets=("value", "output.dense"))
    steps = {"init_checkpoint": str(encoder), "do_train": True, "adapters": adapters}
    run_classifier(configuration(cola, tmp_path / "whole", **steps))
    parts = configuration(cola, tmp_path / "parts", training={"stop_after_step": 4}, **steps)
    first = run_classifier(parts)
    assert (first.training.step, first.training.finished) == (4, False)
    assert not (tmp_path / "parts" / "model").exists()
    second = run_classifier(configuration(cola, tmp_path / "parts", **steps))
    assert (second.training.resumed_from, second.training.step) == (4, 6)
    weights = [
        (tmp_path / n / "model" / "model.safetensors").read_bytes() for n in ("whole", "parts")
    ]
    assert weights[0] == weights[1]
    base = weights_of(encoder)
    trained = weights_of(tmp_path / "whole" / "model")
    changed = {path for path in base if not np.array_equal(base[path], trained[path])}
    assert changed == {
        f"layer_0/{layer}/kernel" for layer in ("attention/value", "attention_output", "output")
    }
    for same in (tmp_path / "whole" / "adapter", tmp_path / "whole" / "checkpoints"):
        for path, weight in weights_of(same).items():
            np.testing.assert_allclose(weight, trained[path], atol=1e-6, err_msg=path)
    state = dict(tf.train.list_variables(str(tmp_path / "whole/checkpoints/step-00000006/state")))
    moments = [shape for name, shape in state.items() if name.startswith("adam_m")]
    assert sorted(moments) == sorted([[16, 2], [2, 16]] * 2 + [[24, 2], [2, 16], [16, 2], [2]])
    scored = configuration(cola, tmp_path / "x", do_eval=True)
    model, adapter = (
        run_classifier(dataclasses.replace(scored, init_checkpoint=str(tmp_path / "whole" / one)))
        for one in ("model", "adapter")
    )
    assert adapter.evaluation == pytest.approx(model.evaluation)
    adapter = str(tmp_path / "whole" / "adapter")
    for start, rank, sentence in (
        (encoder, 17, "the matrices of .* have 16 rows or columns; take at most 16"),
        (adapter, 2, ".*/adapter is an adapter; merge it with convert_checkpoint"),
    ):
        changes = {"init_checkpoint": str(start), "adapters": AdapterConfig(lora_rank=rank)}
        with pytest.raises(UserError, match=f"`lora_rank={rank}`: {sentence}"):
            run_classifier(configuration(cola, tmp_path / "y", do_train=True, **changes))
    with pytest.raises(UserError, match="`max_seq_length` was 12 and is 10"):
        run_classifier(configuration(cola, tmp_path / "parts", max_seq_length=10, **steps))


THOUSANDS = {"mean": 4000.0, "apart": 50.0}


def own_numbers(folder, output_dir, count, splits=("train", "dev"), **changes):
    """A run on numbers in the thousands."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"{split}_file": str(write_numbers(folder / f"{split}.tsv", count, seed, **THOUSANDS))
        for seed, split in enumerate(splits)
    }
    columns = {"text_column": "2", "label_column": ("1",), "regression": True}
    own = LabelledTextsConfig(**files, **columns)
    given = {"task_name": None, "own": own, **changes}
    return configuration(folder, output_dir, **given)


@pytest.mark.slow
def test_a_regression_is_told_and_written_in_the_units_of_its_labels(encoder, tmp_path):
    out = tmp_path / "run"
    config = own_numbers(
        *(tmp_path / "data", out, 90),
        epochs=4.0,
        training={"eval_steps": 20, "learning_rate": 5e-3},
        init_checkpoint=str(encoder),
        do_train=True,
        do_eval=True,
    )
    trained = run_classifier(config).evaluation
    assert trained["eval_pearson"] > 0.9
    assert 0.0 < trained["eval_mean_absolute_error"] < 50.0
    assert trained["eval_loss"] == pytest.approx(trained["eval_mean_squared_error"], rel=1e-4)
    first, *_, last = [json.loads(line) for line in (out / "evaluations.jsonl").open()]
    assert last["loss"] == pytest.approx(trained["eval_loss"], rel=1e-6)
    assert first["loss"] == pytest.approx(first["mean_squared_error"], rel=1e-4)
    step = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert step["loss"] == step["mean_squared_error"] > 100.0

    # What was written is a plain model, which knows nothing of units.
    config = dataclasses.replace(config, do_train=False)
    scored = run_classifier(config).evaluation
    # Around 4000 some answers are equal in float32: rounding may change the order of their ranks.
    ranks = scored.pop("eval_spearman"), trained.pop("eval_spearman")
    assert ranks[0] == pytest.approx(ranks[1], abs=0.02)
    assert {**scored, "global_step": 45} == pytest.approx(trained, rel=1e-3)
    model = BertClassifier.from_pretrained(out / "model")
    scores = model.predict(Tokenizer.from_pretrained(out / "model")(["the dog", "dog cat"]))
    assert np.all(np.abs(scores["logits"] - 4000.0) < 200.0)

    # Training goes on from it where it ended; the curve is of the dev set alone.
    further = own_numbers(
        *(tmp_path / "data", tmp_path / "further", 90),
        splits=("train", "dev", "test"),
        epochs=0.1,
        training={"learning_rate": 1e-9},
        init_checkpoint=str(out / "model"),
        do_train=True,
        do_eval=True,
    )
    again = run_classifier(further).evaluation
    assert again["eval_mean_squared_error"] == pytest.approx(trained["eval_loss"], rel=1e-3)
    lines = (tmp_path / "further" / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["pearson"] == again["eval_pearson"] != again["eval_test_pearson"]
    assert "test_" not in "".join(lines)


def test_the_model_that_a_run_starts_from_is_not_replaced_by_its_own(encoder, cola, tmp_path):
    model = shutil.copytree(encoder, tmp_path / "run" / "model")
    before = (model / "model.safetensors").read_bytes()
    config = configuration(cola, tmp_path / "run", init_checkpoint=str(model), do_train=True)
    with pytest.raises(UserError, match="lies there and would be replaced"):
        run_classifier(config)
    assert (model / "model.safetensors").read_bytes() == before


def test_a_worker_that_is_lost_is_a_sentence(encoder, cola, tmp_path, monkeypatch):
    def lose(_config):
        raise tf.errors.UnavailableError(None, None, "connection reset")

    monkeypatch.setattr("pipelines.fine_tuning.run.make_devices", lose)
    several = {"distribution_strategy": "multi_worker_mirrored"}
    options = {"init_checkpoint": str(encoder), "do_train": True, "training": several}
    with pytest.raises(UserError, match=r"another worker was lost \(connection reset\)"):
        run_classifier(configuration(cola, tmp_path / "run", **options))


def refuse_to_tokenize(*_):
    raise AssertionError("it was tokenized")


@pytest.mark.parametrize("refusal", ["no model", "other labels", "model", "adapter"])
def test_what_a_run_cannot_do_is_said_before_anything_is_tokenized(
    encoder, cola, tmp_path, monkeypatch, refusal
):
    monkeypatch.setattr(Split, "make", refuse_to_tokenize)
    golden = GOLDEN / "pretrain"
    if refusal == "no model":
        options = {"do_eval": True, "vocab_file": str(golden / "vocab.txt")}
        options["bert_config_file"] = str(golden / "bert_config.json")
    elif refusal == "other labels":
        model = write_classifier(tmp_path / "three", "abc")
        options = {"do_predict": True, "init_checkpoint": str(model)}
    else:
        (tmp_path / "run" / refusal).mkdir(parents=True)
        (tmp_path / "run" / refusal / "notes.txt").write_text("mine")
        options = {"do_train": True, "init_checkpoint": str(encoder)}
        options["adapters"] = AdapterConfig(lora_rank=2 if refusal == "adapter" else 0)
    message = {
        "no model": "holds no trained model",
        "other labels": "its labels are a, b, c",
        "model": "exists and is no model directory",
        "adapter": "run/adapter: exists and is no adapter",
    }
    with pytest.raises(UserError, match=message[refusal]):
        run_classifier(configuration(cola, tmp_path / "run", **options))
