"""A run's checkpoint is evaluated, exported and answered with, stopped or while its run goes on."""

import json
import re
import time

import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.checkpoints.model_card import CARD_FILE
from keras_bert_impl.checkpoints.restore import open_source
from keras_bert_impl.errors import UserError
from pipelines.answering.config import FillMaskConfig
from pipelines.answering.predict import fill_mask
from tests.support.glue_files import write_cola
from tests.support.model_folders import write_start
from tests.support.pretraining_run import RECORDED, config_with_dropout, run_here, start
from tools import convert_checkpoint, run_classifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    config = config_with_dropout(tmp_path_factory.mktemp("config"))
    return {**RECORDED, "bert_config_file": config, "init_checkpoint": None, "shuffle": True}


def same_files(one, other):
    """All files but the card, which says how a run went on."""
    names, others = (
        sorted(path.name for path in folder.iterdir() if path.name != CARD_FILE)
        for folder in (one, other)
    )
    assert names == others
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_a_stopped_pretraining_is_exported_as_it_would_be_at_that_step(flags, tmp_path, capsys):
    run, steps = tmp_path / "run", {"save_checkpoints_steps": 4, "save_model_steps": 4}
    run_here(run, **flags, **steps, stop_after_step=8)
    for number in (4, 8):
        checkpoint, model = run / "checkpoints" / f"step-{number:08d}", tmp_path / f"at_{number}"
        assert convert_checkpoint.main([f"--input={checkpoint}", f"--output={model}"]) == 0
        same_files(model, run / f"model-{number}")

    evaluated = {**flags, "do_train": None, "do_eval": True, "num_train_steps": 8}
    for name, model in (("a", run / "checkpoints"), ("b", run / "model-8")):
        given = {"init_checkpoint": model, "bert_config_file": None, "vocab_file": None}
        run_here(tmp_path / name, **{**evaluated, **given})
    results = [(tmp_path / name / "eval_results.txt").read_text() for name in "ab"]
    assert results[0] == results[1]

    found = []
    for model in (run, run / "model-8"):
        capsys.readouterr()
        fill_mask(FillMaskConfig(model=str(model), text=("the [MASK] of a",)))
        found.append(capsys.readouterr().out)
    assert "%" in found[0]
    assert found[0] == found[1]


def test_a_stopped_classifier_is_evaluated_elsewhere_and_ends_as_its_model(tmp_path):
    write_start(tmp_path / "start")
    write_cola(tmp_path / "cola", train=32)
    run = tmp_path / "run"

    def tool(folder, model, *flags):
        words = [f"--output_dir={folder}", f"--init_checkpoint={model}", "--task_name=CoLA"]
        assert run_classifier.main([*words, f"--data_dir={tmp_path}/cola", *flags]) == 0

    training = ["--do_train", "--do_eval", "--eval_steps=4", "--save_checkpoints_steps=4"]
    training += ["--train_batch_size=8", "--num_train_epochs=2", "--max_seq_length=12"]
    training.append("--notrim_padding")  # each length of a batch costs seconds of tracing
    tool(run, tmp_path / "start", *training, "--stop_after_step=4")
    tool(
        tmp_path / "at_4", run, "--do_eval", "--do_predict", "--notrim_padding"
    )  # of the same length, unsaid
    seen = json.loads((run / "evaluations.jsonl").read_text().splitlines()[0])
    results = (tmp_path / "at_4" / "eval_results.txt").read_text()
    assert float(re.search(r"eval_loss = (.*)", results)[1]) == seen["loss"]

    tool(run, tmp_path / "start", *training)
    last, exported = run / "checkpoints" / "step-00000008", tmp_path / "exported"
    assert convert_checkpoint.main([f"--input={last}", f"--output={exported}"]) == 0
    same_files(exported, run / "model")


def test_checkpoints_are_read_while_their_run_goes_on_and_lets_them_go(flags, tmp_path):
    """The run keeps one checkpoint and saves at every step: the hardest to read."""
    options = {"save_checkpoints_steps": 1, "save_model_steps": 1, "keep_checkpoint_max": 1}
    options |= {"num_train_steps": 8}
    process = start(tmp_path, **{**flags, **options})
    read, told = {}, []
    give_up = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < give_up:
        try:
            model = read_portable(tmp_path / "checkpoints")
        except UserError as error:
            told.append(str(error))
            time.sleep(0.05)
            continue
        step = int(model.report.location.rsplit("-", 1)[1])
        read[step] = model
        time.sleep(0.02)
    process.communicate()
    assert process.returncode == 0
    assert len(read) > 2
    known = "[Nn]o such|is neither|holds neither|cannot be read as|no file there says"
    assert [line for line in told if not re.search(known, line)] == []
    for step, model in read.items():
        kept = read_portable(tmp_path / f"model-{step}")
        assert kept.config == model.config
        for name, weight in kept.weights.items():
            np.testing.assert_array_equal(model.weights[name], weight)
    assert open_source(tmp_path).location == str(tmp_path / "model")
