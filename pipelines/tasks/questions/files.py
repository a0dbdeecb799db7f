"""Files in SQuAD's form (1.1, 2.0, KorQuAD 1.0): articles, their paragraphs, their questions.

Files in TriviaQA's form are known by what they hold; see `trivia`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, reading, shown
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.lines import read_json
from pipelines.tasks.counts import Counted
from pipelines.tasks.questions.passages import Passage, PlacedText, Question
from pipelines.tasks.questions.trivia import BESIDE, Evidence, is_trivia, trivia_questions

WANTED = "a file in SQuAD's form"
_KINDS = {str: "text", int: "a whole number", list: "a list"}


def read_questions(
    path: Path,
    *,
    version_2_with_negative: bool,
    evidence: Evidence = BESIDE,
    training: bool = False,
    encoding: TextEncoding = UTF_8,
) -> Iterator[Question]:
    """Reads the questions of a file, in their order.

    Args:
        encoding: how its text stands in bytes. Composed are passages, questions and answers, and
            the places of answers with them; not TriviaQA's documents.
    """
    seen = set[str]()
    for question in _questions(path, evidence, encoding, training=training):
        if question.identifier in seen:
            raise UserError(
                f"{_where(path, question)} comes a second time; give every question an `id` of its "
                "own."
            )
        seen.add(question.identifier)
        if question.is_impossible and not version_2_with_negative:
            raise UserError(
                f"{_where(path, question)} is impossible to answer; set `version_2_with_negative`."
            )
        yield question
    if not seen:
        raise UserError(f"{path}: has no questions; name a file in SQuAD's form.")


def read_training_questions(
    path: Path,
    *,
    version_2_with_negative: bool,
    evidence: Evidence = BESIDE,
    encoding: TextEncoding = UTF_8,
) -> Iterator[Question]:
    """Reads the questions that can be trained on.

    A question whose first answer does not stand where `answer_start` says is left out, as in the
    original; how many there are is logged. Further answers are not used.
    """
    left_out, further = Counted(), Counted()
    negative = version_2_with_negative
    for question in read_questions(
        path,
        version_2_with_negative=negative,
        evidence=evidence,
        training=True,
        encoding=encoding,
    ):
        if not (question.is_impossible or question.answers):
            raise UserError(
                f"{_where(path, question)} has no answer, so it cannot be trained on; remove it."
            )
        if len(question.answers) > 1 and not question.is_impossible:
            further.add(_in_words(question))
        if question.is_impossible or question.answer_words is not None:
            yield question
        else:
            text, start = question.answers[0]
            left_out.add(f"{_in_words(question)}: {shown(text)} is not at {start}")
    left_out.warn(path, "questions left out, whose answer is not where `answer_start` says")
    further.warn(path, "questions of which only the first answer is trained")


def _where(path: Path, question: Question) -> str:
    return f"{path}: {_in_words(question)}"


def _in_words(question: Question) -> str:
    return f"question {shown(question.identifier)} (article {shown(question.passage.article)})"


def _questions(
    path: Path, evidence: Evidence, encoding: TextEncoding, *, training: bool
) -> Iterator[Question]:
    content = read_json(path, WANTED, encoding)
    if is_trivia(content):
        yield from trivia_questions(path, content, evidence, training=training)
        return
    with reading(path, WANTED):
        articles = _a(list, content["data"])
    for number, article in enumerate(articles):
        title = article.get("title", f"number {number}") if isinstance(article, dict) else ""
        with reading(f"{path}: article {shown(title)}", WANTED):
            for paragraph in _a(list, article["paragraphs"]):
                context = _a(str, paragraph["context"])
                passage = Passage(str(title), encoding.composed(context))
                for entry in _a(list, paragraph["qas"]):
                    yield _composed(_question(entry, passage), context, encoding)


def _question(entry: Any, passage: Passage) -> Question:
    answers = tuple(
        PlacedText(_a(str, answer["text"]), _a(int, answer["answer_start"]))
        for answer in _a(list, entry.get("answers") or [])
    )
    impossible = entry.get("is_impossible") is True
    return Question(_a(str, entry["id"]), _a(str, entry["question"]), passage, answers, impossible)


def _a(kind: type, value: Any) -> Any:
    """The value, which is of a kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{shown(value)} is not {_KINDS[kind]}")
    return value


def _composed(question: Question, context: str, encoding: TextEncoding) -> Question:
    """The question composed like its passage, where that is asked for, and its answers' places.

    What stands before an answer is composed alone: no answer begins inside a character.
    """
    if not encoding.composes:
        return question
    compose = encoding.composed
    answers = (
        PlacedText(compose(text), len(compose(context[:start])) if start >= 0 else start)
        for text, start in question.answers
    )
    return replace(question, text=compose(question.text), answers=tuple(answers))
