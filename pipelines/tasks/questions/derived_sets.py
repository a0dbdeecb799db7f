"""Sets in SQuAD's form made of others: unanswerable questions added, or halved by articles."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import check_output, make_folder, open_whole
from keras_bert_impl.options import REQUIRED, check_options, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.metrics.answer_texts import squad_words
from pipelines.tasks.questions.files import read_questions
from pipelines.tasks.questions.passages import Passage, Question

MOVED = "-moved"
"""What the identifier of a question ends in that stands with another passage."""


@dataclass(frozen=True, kw_only=True)
class MakeUnanswerableConfig:
    """The options of moving questions to other passages.

    Raises:
        UserError: a value out of range.
    """

    input_file: Path = option(REQUIRED, "Questions in SQuAD's form, plain or packed.")
    text_encoding: TextEncoding = nested(TextEncoding)
    output_file: Path = option(REQUIRED, "The file to write, in SQuAD 2.0's form.")
    share: float = option(
        0.5,
        "The share of the questions that also stand, without an answer, with another passage of "
        "their article; SQuAD 2.0 has half as many unanswerable questions as others to train on.",
        more_than=0,
        at_most=1,
    )
    passage: str = option(
        "similar",
        "Which of the passages that do not have the answer: similar, the one with most of the "
        "question's words (else the words alone would say that there is no answer), or any.",
        choices=("similar", "any"),
    )
    seed: int = option(12345, "Fixes all draws.", at_least=0, at_most=2**63 - 1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class SplitSquadConfig:
    """The options of halving a set.

    Raises:
        UserError: a value out of range.
    """

    input_file: Path = option(REQUIRED, "Questions in SQuAD's form, plain or packed.")
    text_encoding: TextEncoding = nested(TextEncoding)
    output_dir: Path = option(REQUIRED, "The folder that gets first.json and second.json.")
    first_articles: int = option(
        0, "How many articles go to first.json; 0 is half of them.", at_least=0
    )
    seed: int = option(12345, "Fixes which articles these are.", at_least=0, at_most=2**63 - 1)

    def __post_init__(self) -> None:
        check_options(self)


class MovedCounts(NamedTuple):
    """The files that were written.

    Attributes:
        questions: as they were.
        moved: those that also stand with another passage.
        left: those that were to be moved and could not: every other passage has the answer.
    """

    questions: int
    moved: int
    left: int


class SplitCounts(NamedTuple):
    """The sizes of the halves.

    Attributes:
        articles: how many.
        questions: how many.
    """

    articles: tuple[int, int]
    questions: tuple[int, int]


def make_unanswerable(config: MakeUnanswerableConfig) -> MovedCounts:
    """Adds questions that their passage does not answer; see `MakeUnanswerableConfig`.

    Raises:
        UserError: the file is not in SQuAD's form, has moved questions already, or none can be
            moved.
    """
    output = check_output(config.output_file)
    articles: list[list[Question]] = []
    count = moved = wanted = 0
    for number, article in enumerate(_articles(config.input_file, config.text_encoding)):
        draw = np.random.default_rng([config.seed, number])
        answered = [one for one in article if one.answers and not one.is_impossible]
        chosen = [one for one in answered if draw.random() < config.share]
        _check_not_moved_before(config.input_file, article)
        others = list(moved_questions(chosen, _passages(article), draw, config.passage))
        articles.append([*article, *others])
        count, moved, wanted = count + len(article), moved + len(others), wanted + len(chosen)
    if not moved:
        raise UserError(
            f"{config.input_file}: no question can be moved to another passage of its article; "
            "name a file with several passages an article, or raise `share`."
        )
    _write(output, articles)
    return MovedCounts(count, moved, wanted - moved)


def moved_questions(
    questions: Iterable[Question],
    passages: Sequence[Passage],
    draw: np.random.Generator,
    choice: str = "similar",
) -> Iterator[Question]:
    """Gives questions, without their answers, about other passages.

    Args:
        questions: of one article.
        passages: of the article.
        draw: decides between passages.
        choice: "similar" or "any"; see `MakeUnanswerableConfig`.

    Returns:
        Those questions for which there is a passage without the text of any of their answers.

    Example:
        >>> rain, sun = Passage("Weather", "It rained in May."), Passage("Weather", "It shone.")
        >>> from pipelines.tasks.questions.passages import PlacedText
        >>> asked = Question("q", "When did it rain?", rain, (PlacedText("in May", 10),))
        >>> (moved,) = moved_questions([asked], [rain, sun], np.random.default_rng(1))
        >>> moved.identifier, moved.is_impossible, moved.passage.text
        ('q-moved', True, 'It shone.')
    """
    texts = [_plain(passage.text) for passage in passages]
    words = [set(squad_words(text)) for text in texts]
    for question in questions:
        answers = [_plain(answer.text) for answer in question.answers]
        fits = [
            number
            for number, text in enumerate(texts)
            # Its own passage may have the answer in another spelling.
            if passages[number] is not question.passage and not any(one in text for one in answers)
        ]
        if not fits:
            continue
        if choice == "similar":
            asked = set(squad_words(question.text))
            shared = [len(asked & words[n]) for n in fits]
            fits = [n for n, most in zip(fits, shared, strict=True) if most == max(shared)]
        passage = passages[fits[int(draw.integers(len(fits)))]]
        name = question.identifier + MOVED
        yield Question(name, question.text, passage, (), is_impossible=True)


def split_squad(config: SplitSquadConfig) -> SplitCounts:
    """Writes the articles of a file to two files; see `SplitSquadConfig`.

    Raises:
        UserError: the file is not in SQuAD's form, or has too few articles.
    """
    articles = _articles(config.input_file, config.text_encoding)
    first = config.first_articles or len(articles) // 2
    if not 0 < first < len(articles):
        raise UserError(
            f"{config.input_file}: has {len(articles)} articles, of which {first} cannot stand in "
            "one file and some in the other; lower `first_articles`, or name another file."
        )
    drawn = np.random.default_rng(config.seed).permutation(len(articles))
    make_folder(config.output_dir)
    articles_of, questions_of = [], []
    for name, numbers in (("first", drawn[:first]), ("second", drawn[first:])):
        some = [articles[number] for number in sorted(numbers.tolist())]
        _write(config.output_dir / f"{name}.json", some)
        articles_of.append(len(some))
        questions_of.append(sum(map(len, some)))
    return SplitCounts((articles_of[0], articles_of[1]), (questions_of[0], questions_of[1]))


def _check_not_moved_before(path: Path, article: Iterable[Question]) -> None:
    moved = next(
        (one for one in article if one.is_impossible and one.identifier.endswith(MOVED)), None
    )
    if moved:
        raise UserError(
            f"{path}: question {shown(moved.identifier)} (article {shown(moved.passage.article)}) "
            "was moved "
            "before; name the file without moved questions."
        )


def _articles(path: Path, encoding: TextEncoding) -> list[list[Question]]:
    """The questions of each article."""
    questions = read_questions(path, version_2_with_negative=True, encoding=encoding)
    return [list(some) for _, some in groupby(questions, key=lambda one: one.passage.article)]


def _passages(article: Iterable[Question]) -> list[Passage]:
    return list({id(one.passage): one.passage for one in article}.values())


def _plain(text: str) -> str:
    """A text as it is searched in: without case, with single blanks."""
    return " ".join(text.casefold().split())


def _write(path: Path, articles: Iterable[Sequence[Question]]) -> None:
    content = {"version": "v2.0", "data": [_article(article) for article in articles]}
    with open_whole(path) as file:
        json.dump(content, file)  # ASCII: a file may hold half of a surrogate pair, not in UTF-8


def _article(questions: Sequence[Question]) -> Mapping[str, Any]:
    paragraphs: dict[int, dict[str, Any]] = {}
    for question in questions:
        passage = question.passage
        paragraph = paragraphs.setdefault(id(passage), {"context": passage.text, "qas": []})
        paragraph["qas"].append(_entry(question))
    return {"title": questions[0].passage.article, "paragraphs": list(paragraphs.values())}


def _entry(question: Question) -> Mapping[str, Any]:
    answers = [{"text": one.text, "answer_start": one.start} for one in question.answers]
    return {
        "id": question.identifier,
        "question": question.text,
        "answers": answers,
        "is_impossible": question.is_impossible,
    }
