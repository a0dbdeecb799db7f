"""Files in SQuAD's form, whole and broken."""

import json
import logging

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.files import read_questions

CONTEXT = "It rained all day in May."


def question(identifier, text="May", start=21, **more):
    return {
        "id": identifier,
        "question": "When?",
        "answers": [{"text": text, "answer_start": start}],
        **more,
    }


def write(path, *questions, context=CONTEXT):
    paragraph = {"context": context, "qas": list(questions)}
    path.write_text(json.dumps({"data": [{"title": "Rain", "paragraphs": [paragraph]}]}))
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.json"


def read(path, negative=False):
    return list(read_questions(path, version_2_with_negative=negative))


def trainable(path, negative=False):
    return list(read_questions(path, training=True, version_2_with_negative=negative))


def test_questions_come_in_order_and_share_their_passage(path):
    first, second = read(write(path, question("x"), question("y", "rained", 3)))
    assert (first.identifier, first.text, first.answers) == ("x", "When?", (("May", 21),))
    assert first.passage is second.passage
    assert (first.passage.article, first.passage.text) == ("Rain", CONTEXT)


def test_a_question_may_have_no_answers_where_it_is_only_asked(path):
    write(path, {"id": "x", "question": "When?"})
    assert read(path)[0].answers == ()
    with pytest.raises(UserError, match=r"train.json: question 'x' \(article 'Rain'\) has no answ"):
        trainable(path)


def test_the_place_of_an_answer_is_needed_for_training_alone(path):
    write(path, {"id": "x", "question": "When?", "answers": [{"text": "May"}]})
    assert read(path)[0].answers[0].text == "May"
    with pytest.raises(UserError, match=r"train.json: article 'Rain'.*answer_start"):
        trainable(path)


def test_an_unanswerable_question_needs_the_option(path):
    write(path, {"id": "x", "question": "Why?", "answers": [], "is_impossible": True})
    for reader in (read, trainable):
        assert reader(path, negative=True)[0].is_impossible
        with pytest.raises(UserError, match=r"'x' .*'Rain'.* set `version_2_with_negative`"):
            reader(path)


def test_an_answer_that_is_not_there_is_left_out_of_training_and_counted(path, caplog):
    write(path, question("x"), question("y", "June"), question("z", "May", 500))
    assert len(read(path)) == 3
    with caplog.at_level(logging.WARNING):
        assert [question.identifier for question in trainable(path)] == ["x"]
    (said,) = caplog.messages
    assert "says: 2, the first question 'y' (article 'Rain'): 'June' is not at 21." in said


def test_only_the_first_answer_is_trained(path, caplog):
    both = question("x")
    both["answers"].append({"text": "rained", "answer_start": 3})
    write(path, both)
    with caplog.at_level(logging.WARNING):
        assert trainable(path)[0].answer_words == (5, 5)
    assert "of which only the first answer is trained: 1, the first question 'x'" in caplog.text


def test_an_identifier_that_comes_twice_is_refused(path):
    write(path, question("x"), question("x"))
    with pytest.raises(UserError, match=r"question 'x' \(article 'Rain'\) comes a second time"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data":\n [}', r"train.json: is not JSON from line 2, column 3 on \(Expecting value\)"),
        ('{"data": [{"title": "Rain"}]}', "article 'Rain': .* has no 'paragraphs'"),
        ('{"data": [3]}', "cannot be read as a file in SQuAD's form"),
    ],
)
def test_what_is_no_such_file_is_refused_in_one_sentence(path, content, message):
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read(path)
