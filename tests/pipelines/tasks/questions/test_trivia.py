"""TriviaQA's trees, whole and broken."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.files import find_alias, first_words, read_questions
from tests.support.trivia_tree import write_trivia

RAIN = (
    "t1",
    "Where?",
    ["Spain", "the Kingdom of Spain"],
    {"Rain.txt": "It rains in  Spain,\r\n too."},
)


def read(path, **options):
    return list(read_questions(path, version_2_with_negative=False, **options))


def trained(path, **options):
    return list(read_questions(path, training=True, version_2_with_negative=False, **options))


def test_a_question_is_asked_of_each_of_its_documents(tmp_path):
    documents = {"A.txt": "No answer here.", "sub/B.txt": "the kingdom of\nSpain"}
    path = write_trivia(tmp_path, [RAIN, ("t2", "Which?", RAIN[2], documents)])
    questions = read(path)
    assert [x.identifier for x in questions] == ["t1--Rain.txt", "t2--A.txt", "t2--sub/B.txt"]
    assert questions[0].passage.text == RAIN[3]["Rain.txt"]
    assert [x.answers for x in questions] == [(("Spain", 13),), (), (("kingdom of\nSpain", 4),)]
    assert [x.identifier for x in trained(path)] == ["t1--Rain.txt", "t2--sub/B.txt"]
    assert questions[2].answer_words == (1, 3)


def test_only_verified_documents_of_verified_questions_are_taken(tmp_path):
    other = ("t2", "Which?", ["Spain"], {"B.txt": "Spain", "C.txt": "Spain"})
    path = write_trivia(tmp_path, [RAIN, other], "Web", VerifiedEval=True)
    content = json.loads(path.read_text())
    content["Data"][1]["QuestionPartOfVerifiedEval"] = True
    content["Data"][1]["SearchResults"][1]["DocPartOfVerifiedEval"] = True
    path.write_text(json.dumps(content))
    assert [x.identifier for x in read(path)] == ["t2--C.txt"]


@pytest.mark.parametrize(
    "name",
    ["/etc/hostname", "sub/../../../../secret.txt", "a\0b", "../wikipedia/a.txt", "", "\ud800"],
)
def test_a_document_out_of_the_folder_is_never_read(tmp_path, name):
    (tmp_path / "secret.txt").write_text("Spain is a secret.")
    path = write_trivia(tmp_path / "in", [RAIN])
    content = json.loads(path.read_text())
    content["Data"][0]["EntityPages"] *= 2
    content["Data"][0]["EntityPages"][1] = {"Filename": name}
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"the Filename .* does not lie in .*wikipedia, where"):
        read(path)


def test_a_link_out_of_the_folder_is_not_followed_but_the_folder_may_be_one(tmp_path):
    path = write_trivia(tmp_path / "in", [RAIN])
    pages = tmp_path / "in/evidence/wikipedia"
    pages.rename(tmp_path / "elsewhere")
    pages.symlink_to(tmp_path / "elsewhere")
    assert read(path)[0].passage.text == RAIN[3]["Rain.txt"]
    (tmp_path / "secret.txt").write_text("Spain is a secret.")
    (pages / "Rain.txt").unlink()
    (pages / "Rain.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(UserError, match=r"the Filename 'Rain\.txt' does not lie in"):
        read(path)


def test_missing_evidence_is_counted_and_asked_of_nothing(tmp_path, caplog):
    path = write_trivia(tmp_path, [RAIN, ("t2", "Which?", ["Spain"], {"gone.txt": None})])
    with caplog.at_level(logging.WARNING):
        assert [x.passage.text for x in read(path)][1] == ""
    (count,) = caplog.messages
    assert "1 of 2 documents are missing" in count
    assert [x.identifier for x in trained(path)] == ["t1--Rain.txt"]


def test_without_any_evidence_its_folder_is_asked_for(tmp_path):
    path = write_trivia(tmp_path, [RAIN])
    with pytest.raises(UserError, match=r"none of its documents is in .*name its folder by `ev"):
        read(path, evidence_dir=tmp_path / "elsewhere")
    (tmp_path / "evidence").rename(tmp_path / "elsewhere")
    assert len(read(path, evidence_dir=tmp_path / "elsewhere")) == 1


def test_what_is_no_such_file_is_refused_in_one_sentence(tmp_path):
    path = write_trivia(tmp_path, [RAIN])
    path.write_text(json.dumps({"Data": [{"QuestionId": "t", "EntityPages": [{}]}]}))
    with pytest.raises(UserError, match="it has no 'Filename'"):
        read(path)


@pytest.mark.parametrize(
    ("text", "aliases", "found"),
    [
        ("The job of Ob.", ["ob"], ("Ob", 11)),
        ("King's_Cross (1970)", ["king s cross 1970"], ("King's_Cross (1970", 0)),
        ("a b c", ["b", "b c"], ("b c", 2)),
        ("İstanbul and Ångström", ["ångström"], ("Ångström", 13)),
        ("the", ["the", "", "..."], None),
    ],
)
def test_an_alias_stands_as_whole_words(text, aliases, found):
    assert find_alias(text, aliases) == found


@given(st.text(alphabet="ab \n\t.", max_size=30), st.integers(1, 6))
def test_the_first_words_are_a_beginning_of_the_text(text, most):
    beginning = first_words(text, most)
    assert text.startswith(beginning)
    assert beginning.split() == text.split()[:most]
