"""Questions as a task; runs as a whole are tested with the tool."""

import json
from itertools import islice

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.learning_curve import Guess
from pipelines.metrics.guessing import guesses_of
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import BETWEEN, Passage, PlacedText, Question
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.squad_files import question_task, write_articles, write_squad
from tests.support.trivia_tree import write_trivia

TEXT = TextSettings(WORD_VOCABULARY)
PASSAGE = Passage("", "the dog runs")


def question(identifier, *answers, impossible=False):
    placed = tuple(PlacedText(text, 0) for text in answers)
    return Question(identifier, "a list", PASSAGE, placed, impossible)


def answer(text, odds=None):
    return Prediction([Candidate(text, 1.0, 0.0), Candidate("", 0.0, 0.0)], odds)


def test_answers_come_out_of_the_outputs_of_the_real_tokens(tmp_path):
    path = write_squad(tmp_path / "dev.json", 5)
    task = question_task(TEXT, predict_file=path)
    examples = list(task.examples("predict"))
    rows = task.rows(examples, Tokenizer(TEXT), 14)
    logits = np.zeros(rows.lengths.sum(), np.float32)
    right = {token: WORD_VOCABULARY.id_of(token) for token in ("dog", "cat", "value")}
    logits[np.isin(rows.tokens["input_ids"], list(right.values()))] = 5.0
    answers = task.answers(examples, rows, {"start_logits": logits, "end_logits": logits})
    texts = [prediction.best().text for prediction in answers]
    assert texts == [example.answers[0].text for example in examples]
    assert task.score(zip(examples, answers, strict=True)) == {"exact_match": 100.0, "f1": 100.0}
    (predictions, _) = task.write(tmp_path, "predict", zip(examples, answers, strict=True))
    assert list(json.loads(predictions.read_text()).values()) == texts


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.5, 3)])
def test_whole_articles_are_held_out_by_their_titles_and_the_seed(tmp_path, share, count):
    path = write_articles(tmp_path / "train.json", 6)

    def articles(split, seed=0):
        task = question_task(TEXT, train_file=path, dev_share=share, dev_seed=seed)
        return {example.passage.article for example in task.examples(split)}

    dev, train = articles("predict"), articles("train")
    assert (len(dev), dev & train, len(dev | train)) == (count, set(), 6)
    assert articles("predict") == dev
    assert len({frozenset(articles("predict", seed)) for seed in range(9)}) > 1


@pytest.mark.parametrize("form", ["squad", "trivia"])
def test_answers_that_are_drawn_twice_count_twice(form, tmp_path):
    texts = {f"{n}": "dog" if n % 10 < 7 else "cat" for n in range(400)}  # 70 % are right
    if form == "squad":
        task = question_task(TEXT, predict_file=write_squad(tmp_path / "dev.json", 1))
    else:
        trees = [(n, "a list", ["dog"], {f"{n}.txt": "the dog runs"}) for n in texts]
        task = question_task(TEXT, predict_file=write_trivia(tmp_path / "trivia", trees))
        texts = {
            example.identifier: texts[example.identifier.partition(BETWEEN)[0]]
            for example in task.examples("predict")
        }
    answered = [(question(n, "dog"), answer(text)) for n, text in texts.items()]
    drawn = islice(task.drawn_scores(answered, np.random.default_rng(0)), 100)
    figures = [scores["exact_match"] for scores in drawn]
    assert np.std(figures) == pytest.approx(100 * (0.7 * 0.3 / 400) ** 0.5, rel=0.25)
    assert np.mean(figures) == pytest.approx(70, abs=1)


def test_trivia_laid_out_as_it_is_published_gives_squads_rows(tmp_path):
    path = write_squad(tmp_path / "train.json", 12)
    squad = question_task(TEXT, train_file=path)
    questions = list(squad.examples("train"))
    trees = [
        (x.identifier, x.text, [x.answers[0].text.upper(), "elsewhere"], {f"{n}.txt": y})
        for n, x in enumerate(questions)
        for y in [x.passage.text]
    ]
    trivia = question_task(TEXT, train_file=write_trivia(tmp_path / "trivia", trees))
    wanted, found = (
        task.training_rows(list(task.examples("train")), Tokenizer(TEXT), 14)
        for task in (squad, trivia)
    )
    for name in (*wanted.tokens, *wanted.values):
        left, right = ((rows.tokens | rows.values)[name] for rows in (wanted, found))
        np.testing.assert_array_equal(left, right, err_msg=name)


def test_the_threshold_of_the_highest_f1_is_found_and_kept():
    answered = [
        (question("x", "dog"), answer("dog", -1.0)),
        (question("y", impossible=True), answer("dog", 0.5)),
        (question("z", impossible=True), answer("dog", -0.25)),
    ]
    task = question_task(TEXT, None, version_2_with_negative=True)
    scores = task.score(answered)
    assert scores["f1"] == scores["best_f1"] == 100.0
    assert scores["best_f1_thresh"] == -1.0
    assert task.calibrated(scores).answer_options["null_score_diff_threshold"] == -0.625
    given = question_task(TEXT, 3.0, version_2_with_negative=True)
    assert given.calibrated(scores) is given


def test_korquads_figures_count_characters():
    answered = [(question("x", "dogs"), answer("dog"))]
    assert question_task(TEXT).score(answered)["f1"] == 0.0
    korquad = question_task(TEXT, metric="korquad").score(answered)
    assert korquad["f1"] == pytest.approx(600 / 7)


def test_a_model_that_answers_nothing_is_right_where_there_is_no_answer(tmp_path):
    path = write_squad(tmp_path / "dev.json", 10, negative=True)
    task = question_task(TEXT, predict_file=path, version_2_with_negative=True)
    guess = Guess("no question answered", 50.0)
    assert guesses_of(task, "predict") == {"exact": guess, "f1": guess}
    unanswered = [(example, answer("", -9.0)) for example in task.examples("predict")]
    scores = task.score(unanswered)
    assert (scores["exact"], scores["f1"]) == (50.0, 50.0)


def test_only_labelled_questions_are_counted_as_answered_or_not():
    task = question_task(TEXT, version_2_with_negative=True)
    asked = question("x", "dog"), question("y", impossible=True), question("z")
    assert [task.facts(one).classes for one in asked] == [["an answer"], ["no answer"], None]


def test_a_split_without_a_file_is_named():
    with pytest.raises(UserError, match="`train_file` is missing; name a file in SQuAD's form"):
        question_task(TEXT).examples("train")
