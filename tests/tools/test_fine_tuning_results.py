from pathlib import Path

import pytest

from keras_bert_impl.training.loop import TrainingResult
from pipelines.fine_tuning.run import FineTuningResults
from tools.jobs import results_of


def printed(capsys, **results):
    lines = list(results_of(FineTuningResults(**results)))
    return [*capsys.readouterr().out.splitlines(), *lines]


FINISHED = "Training was finished before; its model is in model/ of the output folder."


@pytest.mark.parametrize(
    ("step", "finished", "resumed_from", "lines"),
    [
        (7, False, 0, ["Stopped after step 7, which is saved; the same command continues."]),
        (9, True, 9, [FINISHED]),
        (9, True, 7, []),
    ],
)
def test_it_says_where_the_training_stands(capsys, step, finished, resumed_from, lines):
    training = TrainingResult(step, finished, resumed_from, {}, None)
    assert printed(capsys, training=training) == lines


def test_figures_come_in_the_order_of_their_names_and_then_the_files(capsys):
    lines = printed(
        capsys, evaluation={"eval_loss": 0.5, "eval_f1": 0.9}, prediction_files=[Path("a.tsv")]
    )
    assert lines == ["eval_f1 = 0.9", "eval_loss = 0.5", "wrote a.tsv"]
