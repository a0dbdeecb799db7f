"""The task of endings: its rows, its answers and its table, held to plain loops."""

import json

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.metrics.guessing import guesses_of
from pipelines.tasks.choices.task import ChoiceAnswer, ChoiceFile, ChoiceTask
from pipelines.tasks.register import open_task_model
from tests.support.choice_files import write_swag
from tests.support.model_folders import WORD_VOCABULARY, write_chooser

TEXT = TextSettings(WORD_VOCABULARY, do_lower_case=True)


@pytest.fixture
def task(tmp_path):
    path = write_swag(tmp_path / "val.csv", 7, choices=3)
    return ChoiceTask(3, {"dev": ChoiceFile(path, labelled=True)})


@pytest.mark.parametrize("length", [7, 12])
def test_a_row_holds_the_context_with_each_ending(task, length):
    examples, tokenizer = list(task.examples("dev")), Tokenizer(TEXT)
    rows = task.rows(examples, tokenizer, length)
    assert rows.choices == 3
    assert rows.values["label_ids"].tolist() == [example.label for example in examples]
    padded = rows.padded(length)
    for number, example in enumerate(examples):
        for place, ending in enumerate(example.endings):
            expected = tokenizer(example.context, ending, max_seq_length=length)
            size = expected["input_ids"].shape[1]
            for name, values in expected.items():
                assert padded[name][number, place, :size].tolist() == values[0].tolist()
                assert not padded[name][number, place, size:].any()


def test_labels_of_a_file_that_lacks_some_are_left_out(tmp_path):
    path = tmp_path / "test.jsonl"
    lines = [{"context": "a", "endings": ["b", "c"], "label": label} for label in (None, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = ChoiceTask(2, {"test": ChoiceFile(path, labelled=False)})
    assert [example.label for example in task.examples("test")] == [None, None]


def test_the_best_ending_is_chosen_scored_and_written(task, tmp_path):
    examples = list(task.examples("dev"))
    logits = np.zeros([len(examples), 3], np.float32)
    for number, example in enumerate(examples):
        logits[number, example.label] = 1.0
    logits[0] = [2.0, 0.0, 0.0] if examples[0].label else [0.0, 2.0, 0.0]
    answers = task.answers(examples, None, {"logits": logits})
    answered = list(zip(examples, answers, strict=True))
    assert task.score(answered) == {"accuracy": pytest.approx(6 / 7)}
    (path,) = task.write(tmp_path, "dev", answered)
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    assert lines[0] == ["id", "prediction", "P(0)", "P(1)", "P(2)"]
    assert [line[0] for line in lines[1:]] == [f"row{number}" for number in range(7)]
    for line, scores in zip(lines[1:], logits, strict=True):
        expected = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(np.array(line[2:], float), expected, rtol=1e-6)
        assert int(line[1]) == scores.argmax()
    assert isinstance(answers[0], ChoiceAnswer)


def test_served_probabilities_are_the_offline_ones(task, tmp_path):
    write_chooser(tmp_path / "model")
    opened = open_task_model(tmp_path / "model", task, do_lower_case=True)
    opened.model.config = with_task_settings(opened.model.config, {"max_seq_length": 8})
    examples = list(task.examples("dev"))
    rows = task.rows(examples, Tokenizer(opened.text), 8).padded(8)
    names = ("input_ids", "input_mask", "segment_ids")
    logits = np.asarray(opened.model({name: rows[name] for name in names})["logits"])
    answers = task.answers(examples, None, {"logits": logits})
    texts = {
        "context": [example.context for example in examples],
        "endings": [example.endings for example in examples],
    }
    found = task.served(opened, None).call("text", texts)
    assert found["ending"].numpy().tolist() == [answer.ending for answer in answers]
    expected = [answer.probabilities for answer in answers]
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)


def test_a_model_that_chooses_the_same_number_is_right_as_often_as_the_commonest_label(task):
    labels = [example.label for example in task.examples("dev")]
    most = max(labels.count(number) for number in range(3)) / len(labels)
    assert {name: guess.value for name, guess in guesses_of(task, "dev").items()} == {
        "accuracy": pytest.approx(most)
    }
