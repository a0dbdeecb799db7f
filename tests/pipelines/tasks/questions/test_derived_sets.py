"""Sets made of others: what is moved has no answer there, and halves share no article."""

import json
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.derived_sets import (
    MakeUnanswerableConfig,
    SplitSquadConfig,
    make_unanswerable,
    split_squad,
)
from pipelines.tasks.questions.files import read_questions, read_training_questions
from tests.support.squad_files import write_articles


def moved_set(tmp_path, **options):
    source = write_articles(tmp_path / "train.json")
    output = tmp_path / "moved.json"
    counts = make_unanswerable(
        MakeUnanswerableConfig(input_file=source, output_file=output, **options)
    )
    return counts, list(read_questions(output, version_2_with_negative=True))


@pytest.mark.parametrize("choice", ["similar", "any"])
def test_a_moved_question_stands_where_no_answer_does(tmp_path, choice):
    counts, questions = moved_set(tmp_path, share=1.0, passage=choice)
    before = {one.identifier: one for one in questions if not one.is_impossible}
    moved = [one for one in questions if one.is_impossible]
    assert counts == (48, 48, 0)
    assert (len(before), len(moved)) == (48, 48)
    for one in moved:
        original = before[one.identifier.removesuffix("-moved")]
        assert one.text == original.text
        assert one.passage.article == original.passage.article
        assert original.answers[0].text.lower() not in one.passage.text.lower()
        assert original.answer_words is not None  # it still stands where it did


def test_the_similar_passage_has_most_of_the_questions_words(tmp_path):
    _, questions = moved_set(tmp_path, share=1.0)
    asked_next = [one for one in questions if one.identifier == "0-0-long-moved"]
    assert [one.passage.text for one in asked_next] == ["In Lima  it rained 1 days."]


def test_the_share_and_the_seed_decide(tmp_path):
    counts, questions = moved_set(tmp_path, share=0.25)
    assert 4 < counts.moved < 24
    again, same = moved_set(tmp_path, share=0.25)
    names = [one.identifier for one in questions]
    assert counts == again
    assert names == [one.identifier for one in same]
    _, others = moved_set(tmp_path, share=0.25, seed=2)
    assert names != [one.identifier for one in others]


def test_what_is_written_can_be_trained_on(tmp_path):
    moved_set(tmp_path)
    found = read_training_questions(tmp_path / "moved.json", version_2_with_negative=True)
    assert sum(one.is_impossible for one in found) > 0


def test_where_every_passage_has_the_answer_nothing_is_moved(tmp_path):
    qas = [{"id": "x", "question": "What?", "answers": [{"text": "Rain", "answer_start": 0}]}]
    paragraphs = [{"context": "Rain.", "qas": qas}]
    source = tmp_path / "one.json"
    source.write_text(json.dumps({"data": [{"title": "x", "paragraphs": paragraphs}]}))
    config = MakeUnanswerableConfig(input_file=source, output_file=tmp_path / "out", share=1.0)
    with pytest.raises(UserError, match="no question can be moved to another passage"):
        make_unanswerable(config)
    assert not (tmp_path / "out").exists()


def test_halves_have_all_questions_and_share_no_article(tmp_path):
    source = write_articles(tmp_path / "dev.json", 5)
    counts = split_squad(SplitSquadConfig(input_file=source, output_dir=tmp_path / "halves"))
    assert counts == ((2, 3), (16, 24))
    halves = [
        list(read_questions(tmp_path / "halves" / f"{name}.json", version_2_with_negative=False))
        for name in ("first", "second")
    ]
    articles = [{one.passage.article for one in half} for half in halves]
    assert articles[0].isdisjoint(articles[1])
    whole = list(read_questions(source, version_2_with_negative=False))
    ours = {one.identifier: (one.text, one.passage.text, one.answers) for h in halves for one in h}
    assert ours == {one.identifier: (one.text, one.passage.text, one.answers) for one in whole}


@pytest.mark.parametrize("first", [5, 6])
def test_a_half_that_would_be_empty_is_refused(tmp_path, first):
    source = write_articles(tmp_path / "dev.json", 5)
    with pytest.raises(UserError, match=f"5 articles, of which {first} cannot stand in one file"):
        split_squad(SplitSquadConfig(input_file=source, output_dir=tmp_path, first_articles=first))


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.5}, {"passage": "best"}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(UserError):
        MakeUnanswerableConfig(input_file=Path("x"), output_file=Path("y"), **wrong)


def written(path, *paragraphs):
    """A file of one article of (passage, {identifier: (answer, start)})."""
    content = [
        {
            "context": context,
            "qas": [
                {
                    "id": name,
                    "question": "What did it do?",
                    "answers": [{"text": text, "answer_start": start}],
                }
                for name, (text, start) in answers.items()
            ],
        }
        for context, answers in paragraphs
    ]
    path.write_text(json.dumps({"data": [{"title": "x", "paragraphs": content}]}))
    return path


def test_a_question_never_loses_the_answer_in_its_own_passage(tmp_path):
    """An answer may be written otherwise in its own passage, which is the most similar one."""
    own, other = "What it did: cafe\u0301.", "Snow."
    source = written(
        tmp_path / "x.json", (own, {"x": ("caf\u00e9", 13)}), (other, {"y": ("Snow", 0)})
    )
    output = tmp_path / "moved.json"
    make_unanswerable(MakeUnanswerableConfig(input_file=source, output_file=output, share=1.0))
    moved = [x for x in read_questions(output, version_2_with_negative=True) if x.is_impossible]
    assert {x.identifier: x.passage.text for x in moved} == {"x-moved": other, "y-moved": own}


def test_what_was_moved_before_is_not_moved_again(tmp_path):
    moved_set(tmp_path)
    config = MakeUnanswerableConfig(
        input_file=tmp_path / "moved.json", output_file=tmp_path / "again.json"
    )
    with pytest.raises(UserError, match=r"question '.*-moved' \(article .*\) was moved before"):
        make_unanswerable(config)
    assert not (tmp_path / "again.json").exists()


def test_half_of_a_surrogate_pair_is_kept(tmp_path):
    texts = ("It rained \ud83c.", {"x": ("rained", 3)}), ("Snow.", {"y": ("Snow", 0)})
    output = tmp_path / "moved.json"
    source = written(tmp_path / "x.json", *texts)
    make_unanswerable(MakeUnanswerableConfig(input_file=source, output_file=output, share=1.0))
    found = read_questions(output, version_2_with_negative=True)
    assert {x.passage.text for x in found} == {text for text, _ in texts}
