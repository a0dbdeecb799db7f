"""What is said of the rows of a run, for all tasks in one place."""

import csv
import logging

import pytest

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.row_set import Split
from pipelines.tasks.choices.task import ChoiceFile, ChoiceTask
from pipelines.tasks.labels.options import LabelledTextsConfig
from pipelines.tasks.tagging.options import TaggingConfig
from tests.support.choice_files import write_swag
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.opened_tasks import open_labelled_texts, open_tagging
from tests.support.squad_files import question_task, write_squad

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))
PLAIN = [("the dog", "a"), ("dog the", "b"), ("dog", "a"), ("the", "b")]


def told(caplog, task, *splits, length=6):
    """What the log says of the last of some splits; the first one is trained on."""
    made = [Split.make(task, split, TOKENIZER, length) for split in splits]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        made[-1].counts.tell(made[0].counts)
    return [message.partition(": ")[2] for message in caplog.messages]


def labelled(folder, train, dev=(), labels=("label",)):
    files = {}
    for split, rows in (("train", train), ("dev", dev)):
        if rows:
            path = folder / f"{split}.csv"
            files[f"{split}_file"] = str(path)
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([["text", *labels], *rows])
    return open_labelled_texts(LabelledTextsConfig(label_column=labels, **files))


@pytest.mark.parametrize(
    ("more", "sentences"),
    [
        ([], []),
        (
            [("the dog", "a"), ("dog dog", "b")],
            ["rows that occur twice: 1 of 6, the first on line 6."],
        ),
        (
            [("dog", "b"), ("dog dog", "a")],
            [
                "rows with the text of another row and another label; correct them: 2 of 6, the "
                "first on line 4."
            ],
        ),
        ([("", "a"), (" ", "b")], []),
        (
            [("the the", "A"), ("dog dog", "b")],
            ["the labels 'a' and 'A' differ only in how they are written; write each in one way."],
        ),
        ([("dog dog", "a")], ["60.0 % of the labels are 'a'."]),
        ([("qqq", "a"), ("dog dog", "b")], ["11.1 % of the words become [UNK]."]),
        (
            [("dog the dog the dog", "a"), ("dog dog", "b")],
            ["16.7 % of the texts are cut to the length."],
        ),
    ],
)
def test_one_line_says_what_is_odd_in_a_file(tmp_path, caplog, more, sentences):
    assert told(caplog, labelled(tmp_path, [*PLAIN, *more]), "train") == sentences


def test_a_dev_set_is_held_against_the_training_set(tmp_path, caplog):
    task = labelled(tmp_path, PLAIN, [("the the", "b"), ("dog the", "b")])
    shared, one = told(caplog, task, "train", "dev")
    assert shared.startswith("rows of ")
    assert shared.endswith(
        "train.csv as well, on which figures say little: 1 of 2, the first on line 3."
    )
    assert one == "all 2 labels are 'b'; its figures do not show what a model has learned."
    (shared,) = told(caplog, labelled(tmp_path, PLAIN, PLAIN), "train", "dev")
    assert shared.endswith("say little: all 4, the first on line 2.")


def test_a_dev_set_that_was_cut_off_the_training_file_is_named(tmp_path, caplog):
    rows = [(f"the {'dog ' * n}", "ab"[n % 5 == 0]) for n in range(40)]
    labelled(tmp_path, rows)
    files = {"train_file": str(tmp_path / "train.csv"), "dev_share": 0.5}
    task = open_labelled_texts(LabelledTextsConfig(label_column=("label",), **files))
    assert told(caplog, task, "train", length=60)
    assert all(message.startswith(str(tmp_path)) for message in caplog.messages)
    assert told(caplog, task, "train", "dev", length=60)
    assert all(message.startswith(f"the dev set of {tmp_path}") for message in caplog.messages)


def test_empty_cells_in_columns_of_labels_are_counted(tmp_path, caplog):
    rows = [("dog", "1", ""), ("the", "0", "1"), ("the dog", "1", "1"), ("dog the", "", "0")]
    (line,) = told(caplog, labelled(tmp_path, rows, labels=("rude", "toxic")), "train")
    assert line.endswith("a label, which is learned as no: 2, the first on line 2.")


def test_every_family_is_counted(tmp_path, caplog):
    questions = write_squad(tmp_path / "qa.json", 10, negative=True)
    files = {"train_file": questions, "predict_file": questions}
    asked = question_task(**files, version_2_with_negative=True)
    (tmp_path / "train.txt").write_text("the O\ndog B-PER\n\n")
    (tmp_path / "dev.txt").write_text("the O\n\n")
    tagged = open_tagging(TaggingConfig(data_dir=tmp_path))
    path = write_swag(tmp_path / "swag.csv", 8)
    chosen = ChoiceTask(4, {split: ChoiceFile(path, True) for split in ("train", "dev")})
    assert "say little: all 10, the" in told(caplog, asked, "train", "predict", length=60)[-1]
    assert "all 1 labels are 'O'" in told(caplog, tagged, "train", "dev")[0]
    assert (
        "say little: all 8, the first on line 2"
        in told(caplog, chosen, "train", "dev", length=60)[0]
    )
