from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import LabelUnits as Units
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from tests.support.labelled_files import write_classes, write_numbers


def config(name, **changes):
    return RunClassifierConfig(
        output_dir=Path("run"), task_name=name, data_dir=Path("data"), **changes
    )


@pytest.mark.parametrize(
    ("typed", "name"), [("cola", "CoLA"), ("STSB", "STS-B"), ("AX", "AX"), ("XNLI", "XNLI-zh")]
)
def test_a_name_gives_its_task_with_its_files(typed, name):
    task = task_of(config(typed))
    assert (task.name, task.data_dir) == (name, Path("data"))


def test_files_of_ones_own_make_a_task(tmp_path):
    train = write_classes(tmp_path / "train.csv", 9)
    own = LabelledTextsConfig(train_file=str(train))
    long_texts = LongTexts(long_text="head_tail")
    given = {"own": own, "long_texts": long_texts, "do_train": True}
    task = task_of(RunClassifierConfig(output_dir=tmp_path / "run", **given))
    assert (task.name, task.labels) == ("labelled texts", ("bad", "good", "so-so"))
    assert task.settings["long_text"] == "head_tail"


def numbers(tmp_path, mean=4000.0, apart=50.0, **changes):
    """A run that learns numbers of one's own; a third of them each mean - apart, mean, + apart."""
    train = write_numbers(tmp_path / "train.tsv", 30, mean=mean, apart=apart)
    own = {"text_column": "2", "label_column": ("1",), "regression": True}
    own |= changes.pop("own", {})
    return RunClassifierConfig(
        output_dir=tmp_path / "run",
        own=LabelledTextsConfig(train_file=str(train), **own),
        **{"do_train": True, **changes},
    )


def scale_of(config):
    """The units in which the task's head learns, from the settings of its runs."""
    units = task_of(config).head_of.settings.get("label_units")
    return None if units is None else Units(*units)


def test_numbers_of_ones_own_are_learned_in_units_of_their_deviation(tmp_path):
    scale = scale_of(numbers(tmp_path))
    assert scale.mean == pytest.approx(4000.0)
    assert scale.deviation == pytest.approx(50 * (2 / 3) ** 0.5)


def test_rows_that_are_not_trained_on_have_no_say_in_the_units(tmp_path):
    held_out = numbers(tmp_path, own={"dev_share": 0.4})
    labels = [float(example.label) for example in task_of(held_out).examples("train")]
    assert len(labels) < 30
    assert scale_of(held_out).mean == pytest.approx(np.mean(labels))


@pytest.mark.parametrize(
    ("mean", "apart", "said"),
    [
        (3.0, 0.0, "all rows to train on have the number 3, so that there is nothing to learn"),
        (1.7e9, 2.0, r"from 1699999998 to 1700000002, near which .* 128 apart; .* as 1.7e\+09"),
    ],
)
def test_labels_that_are_one_number_are_refused(tmp_path, mean, apart, said):
    with pytest.raises(UserError, match=rf"train.tsv: .*{said}"):
        task_of(numbers(tmp_path, mean=mean, apart=apart))


def test_labels_that_are_large_beside_their_differences_are_told(tmp_path, caplog):
    task_of(numbers(tmp_path, mean=1e6, apart=1e3))
    assert "apart; take a constant" not in caplog.text
    task_of(numbers(tmp_path, mean=-1e6, apart=50))
    assert "0.0625 apart; take a constant such as" in caplog.text
