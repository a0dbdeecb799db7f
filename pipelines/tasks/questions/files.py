"""Files in SQuAD's form (1.1, 2.0, KorQuAD 1.0): articles, their paragraphs, their questions.

Files in TriviaQA's form are known by what they hold, and read as `trivia_files` says.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, shown
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.lines import read_json
from pipelines.tasks.questions.passages import Passage, PlacedText, Question
from pipelines.tasks.questions.trivia import BESIDE, Evidence, is_trivia, trivia_questions

WANTED = "a file in SQuAD's form"
_KINDS = {str: "text", int: "a whole number", list: "a list"}

_LOGGER = logging.getLogger(__name__)


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
    count = left_out = further = 0
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
        count += 1
        further += len(question.answers) > 1 and not question.is_impossible
        if question.is_impossible or question.answer_words is not None:
            yield question
            continue
        if not left_out:
            text, start = question.answers[0]
            where = _where(path, question)
            _LOGGER.warning("%s is left out: %s does not stand at %d.", where, shown(text), start)
        left_out += 1
    if left_out:
        _LOGGER.warning(
            "%s: left out %d of %d questions whose answer is not where `answer_start` says.",
            path,
            left_out,
            count,
        )
    if further:
        _LOGGER.warning("%s: of %d questions only the first answer is trained.", path, further)


def is_trivia_file(path: Path, encoding: TextEncoding = UTF_8) -> bool:
    """Whether a file is of TriviaQA's form.

    Args:
        encoding: how its text stands in bytes.
    """
    return is_trivia(read_json(path, WANTED, encoding))


def _where(path: Path, question: Question) -> str:
    return (
        f"{path}: question {shown(question.identifier)} (article {shown(question.passage.article)})"
    )


def _questions(
    path: Path, evidence: Evidence, encoding: TextEncoding, *, training: bool
) -> Iterator[Question]:
    content = read_json(path, WANTED, encoding)
    if is_trivia(content):
        yield from trivia_questions(path, content, evidence, training=training)
        return
    with _uncollected():
        for number, article in enumerate(_list(content, "data", f"{path}")):
            title = article.get("title", f"number {number}") if isinstance(article, dict) else ""
            where = f"{path}: article {shown(title)}"
            for place, paragraph in enumerate(_list(article, "paragraphs", where), start=1):
                inside = f"{where}: paragraph {place}"
                context = _field(paragraph, "context", str, inside)
                passage = Passage(str(title), encoding.composed(context))
                for count, entry in enumerate(_list(paragraph, "qas", inside), start=1):
                    question = _question(entry, passage, where, f"{inside}: question {count}")
                    yield _composed(question, context, encoding)


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


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps Python's cyclic collector off what is there now.

    A file's objects are no garbage; walking over them again and again took a fifth of the time.
    """
    if gc.get_freeze_count():  # the program does this itself
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _question(entry: Any, passage: Passage, where: str, place: str) -> Question:
    """A question; `place` is its number in words, for one without an identifier."""
    identifier = _field(entry, "id", str, place)
    where = f"{where}: question {shown(identifier)}"
    answers = _list(entry, "answers", where) if entry.get("answers") else ()
    return Question(
        identifier,
        _field(entry, "question", str, where),
        passage,
        tuple(_answer(answer, where) for answer in answers),
        entry.get("is_impossible") is True,
    )


def _answer(answer: Any, where: str) -> PlacedText:
    text = _field(answer, "text", str, where, "an answer")
    return PlacedText(text, _field(answer, "answer_start", int, where, "the answer", text))


def _list(holder: Any, name: str, where: str) -> list[Any]:
    return _field(holder, name, list, where)


def _field(
    holder: Any, name: str, kind: type, where: str, what: str = "", text: str | None = None
) -> Any:
    """A value of an object; `what` and `text` name the object inside of `where`, if it has none."""
    value = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    inside = f": {what}" if what else ""
    inside += "" if text is None else f" {shown(text)}"
    if value is None:
        raise UserError(f"{where}{inside}: has no field {name!r}; name {WANTED}.")
    raise UserError(
        f"{where}{inside}: the field {name!r} is not {_KINDS[kind]} but {shown(value)}; "
        f"name {WANTED}."
    )
