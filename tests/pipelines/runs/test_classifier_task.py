from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.runs.classifier_task import task_of
from pipelines.runs.fine_tuning_config import RunClassifierConfig
from pipelines.tasks.labelled_texts_config import LabelledTextsConfig
from pipelines.tasks.xnli_config import XnliConfig
from tests.support.labelled_files import write_classes


def config(name, **changes):
    return RunClassifierConfig(
        output_dir=Path("run"), task_name=name, data_dir=Path("data"), **changes
    )


@pytest.mark.parametrize(("typed", "name"), [("cola", "CoLA"), ("AX", "AX"), ("XNLI", "XNLI")])
def test_a_name_gives_its_task_with_its_files(typed, name):
    task = task_of(config(typed))
    assert (task.name, task.data_dir) == (name, Path("data"))


@pytest.mark.parametrize("name", ["cola", "xnli"])
def test_the_options_for_long_texts_reach_the_task(name):
    long_texts = LongTexts(long_text="head_tail")
    assert task_of(config(name, long_texts=long_texts)).settings == {"long_text": "head_tail"}


def test_xnlis_languages_reach_the_task():
    task = task_of(config("xnli", xnli=XnliConfig(xnli_language="th")))
    assert task.files("train") == [Path("data/multinli/multinli.train.th.tsv")]
    assert task.evaluation_splits == ("dev_th",)


def test_an_unknown_name_gets_the_list_of_names():
    with pytest.raises(UserError, match=r"choose CoLA, .*, WNLI, AX or XNLI"):
        task_of(config("boolq"))


def test_files_of_ones_own_make_a_task(tmp_path):
    train = write_classes(tmp_path / "train.csv", 9)
    own = LabelledTextsConfig(train_file=str(train))
    long_texts = LongTexts(long_text="head_tail")
    given = {"own": own, "long_texts": long_texts, "do_train": True}
    task = task_of(RunClassifierConfig(output_dir=tmp_path / "run", **given))
    assert (task.name, task.labels) == ("labelled texts", ("bad", "good", "so-so"))
    assert task.settings["long_text"] == "head_tail"
