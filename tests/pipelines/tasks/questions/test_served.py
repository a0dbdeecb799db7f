"""Served answers, held to those that are predicted offline and to the passages' own characters."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.answerer import ServingSettings
from pipelines.tasks.questions.answers import AnswerSettings
from pipelines.tasks.questions.files import read_questions
from pipelines.tasks.questions.served import ServedQuestions
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import tiny_config
from tests.support.plain_passages import VOCABULARY, make_questions
from tests.support.squad_files import question_task
from tests.support.tiny_bert import scatter_weights

SETTINGS = {
    "task": "squad",
    "max_seq_length": 24,
    "doc_stride": 5,
    "max_query_length": 6,
    "n_best_size": 7,
    "max_answer_length": 6,
    "version_2_with_negative": False,
    "null_score_diff_threshold": 0.0,
}


def write_model(folder, vocabulary, do_lower_case, **changes):
    """A model with scattered weights, so that all logits differ."""
    sizes = {"max_position_embeddings": 64, "num_hidden_layers": 2}
    config = tiny_config(vocab_size=len(vocabulary), **sizes)
    config = with_task_settings(config, {**SETTINGS, **changes})
    text = TextSettings(vocabulary, do_lower_case)
    write_model_directory(folder, scatter_weights(BertSpanLabeler(config)), text)
    return folder


def serve(folder, max_seq_length=None):
    return open_and_serve(folder, max_seq_length=max_seq_length)


def predicted(opened, questions):
    """What `run_squad` answers: the task's rows, the model, the task's answers."""
    settings = ServingSettings.of(opened.model.config)
    windows = settings.windows
    options = {**asdict(windows), **asdict(settings.answers)}
    task = question_task(opened.text, **options)
    tokenizer = Tokenizer(opened.text)
    rows = task.rows(questions, tokenizer, windows.max_seq_length)
    length = int(rows.lengths.max())
    inputs = {
        name: rows.padded(length)[name] for name in ("input_ids", "input_mask", "segment_ids")
    }
    outputs = opened.model.predict(inputs, batch_size=64, verbose=0)
    inside = np.arange(length) < rows.lengths[:, None]
    outputs = {name: array[inside] for name, array in outputs.items()}
    return task.answers(questions, rows, outputs)


def asked(served, questions, signature="serving_default", at_once=50):
    """Calls a signature; strings come as bytes."""
    parts = []
    for start in range(0, len(questions), at_once):
        some = questions[start : start + at_once]
        inputs = {"question": [x.text for x in some], "passage": [x.passage.text for x in some]}
        parts.append({name: x.numpy() for name, x in served.call(signature, inputs).items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def check_equal(opened, served, questions, predictions, threshold=0.0):
    """Every served answer is the offline one, character by character."""
    found = asked(served, questions)
    answers = [prediction.best(threshold) for prediction in predictions]
    assert found["start"].tolist() == [answer.start for answer in answers]
    assert found["end"].tolist() == [answer.end for answer in answers]
    texts = [x.passage.text[y.start : y.end] for x, y in zip(questions, answers, strict=True)]
    assert [text.decode() for text in found["answer"]] == texts
    some = [number for number, answer in enumerate(answers) if answer.end]
    scores = [answers[number].score for number in some]
    np.testing.assert_allclose(found["score"][some], scores, atol=1e-4)
    return found, texts


def check_with_threshold(opened, questions):
    """The same where there may be no answer, with a threshold that half of the questions reach."""
    predictions = predicted(opened, questions)
    odds = [prediction.null_odds for prediction in predictions]
    threshold = sum(sorted(odds)[len(odds) // 2 - 1 :][:2]) / 2  # between two questions
    settings = replace(ServingSettings.of(opened.model.config), threshold=threshold)
    served = ServedQuestions(opened, settings)
    found, texts = check_equal(opened, served, questions, predictions, threshold)
    found = found["no_answer_score"] - found["score"]
    np.testing.assert_allclose(found, odds, rtol=1e-5, atol=1e-4)
    assert 0 < texts.count("") < len(texts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "model", VOCABULARY, False)


@pytest.fixture(scope="module")
def opened_and_served(folder):
    return serve(folder)


def test_answers_are_the_offline_ones_whatever_the_blanks(opened_and_served):
    opened, served = opened_and_served
    questions = make_questions(80)
    _, texts = check_equal(opened, served, questions, predicted(opened, questions))
    assert any(blank in text for text in texts for blank in ("  ", "\t", "\n", "\u00a0"))
    assert any("\u00ad" in text for text in texts)
    assert not any(text.endswith(("\u00ad", "\u200b", "\x00")) for text in texts)


def test_no_answer_is_given_where_none_is_offline(tmp_path):
    negative = {"version_2_with_negative": True}
    opened, _ = serve(write_model(tmp_path / "model", VOCABULARY, True, **negative))
    check_with_threshold(opened, make_questions(81))


@pytest.mark.slow
def test_the_best_answers_come_in_their_order(opened_and_served):
    opened, served = opened_and_served
    questions = make_questions(20, seed=1)
    found = asked(served, questions, "answers")
    for number, prediction in enumerate(predicted(opened, questions)):
        count = found["answer_counts"][number]
        places = list(zip(found["starts"][number], found["ends"][number], strict=True))[:count]
        # Offline a text comes once, here each place of it.
        wanted = [(x.start, x.end) for x in prediction.candidates if x.end]
        common = [place for place in places if place in wanted]
        assert common == wanted[: len(common)]
        assert places[:1] == wanted[:1]
        assert sorted(found["scores"][number], reverse=True) == list(found["scores"][number])
        text = questions[number].passage.text
        answers = [answer.decode() for answer in found["answers"][number][:count]]
        assert answers == [text[start:end] for start, end in places]


def test_settings_are_the_directorys_and_else_the_originals():
    config = tiny_config(max_position_embeddings=400)
    assert ServingSettings.of(config).windows.max_seq_length == 384
    assert ServingSettings.of(config).answers == AnswerSettings()
    given = ServingSettings.of(with_task_settings(config, SETTINGS), max_seq_length=32)
    assert (given.windows.max_seq_length, given.windows.doc_stride) == (32, 5)
    assert given.answers == AnswerSettings(7, 6)


def test_a_length_that_does_not_fit_is_refused(folder):
    with pytest.raises(UserError, match=r"`max_seq_length=65` (must be|is) more than"):
        serve(folder, 65)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "vocabulary", "lower"),
    [
        ("squad/dev-v2.0.json.xz", "bert-base-uncased-vocab.txt", True),
        ("korean/KorQuAD_v1.0_dev.json.xz", "bert-base-multilingual-cased-vocab.txt", False),
    ],
)
def test_served_answers_to_published_questions(data_folder, tmp_path, name, vocabulary, lower):
    path = data_folder / name
    negative = "v2" in name
    folder = write_model(
        tmp_path / "model",
        Vocabulary.load(data_folder / "vocab" / vocabulary),
        lower,
        max_seq_length=64,
        doc_stride=30,
        max_query_length=20,
        version_2_with_negative=negative,
    )
    questions = read_questions(path, version_2_with_negative=negative)
    some = [question for number, question in enumerate(questions) if number % 303 == 0]
    opened, served = serve(folder)
    if negative:
        check_with_threshold(opened, some)
    else:
        check_equal(opened, served, some, predicted(opened, some))
