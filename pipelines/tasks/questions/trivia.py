"""TriviaQA's published files: questions in `qa/`, documents that may answer them in `evidence/`.

Nobody marked where an answer stands, so the first position in a document where one of the answer's
aliases stands is taken for it (distant supervision). The paper on BERT trained on the first 400
words of Wikipedia's documents, those that have an alias among them (section 4.2, the footnote).
"""

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, reason_of, shown
from keras_bert_impl.files import open_whole, real_path
from pipelines.metrics.question_answering import trivia_scores
from pipelines.tasks.questions.answers import Prediction
from pipelines.tasks.questions.passages import Passage, PlacedText, Question

_LOGGER = logging.getLogger(__name__)

_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
_NOT_BLANK = re.compile(r"\S+")
_WORDS = re.compile(r"[^\W_]+")
_ARTICLES = {"a", "an", "the"}
_MOST_BYTES = 64 << 20  # of a document's beginning


@dataclass(frozen=True)
class Evidence:
    """Where TriviaQA's documents are, and how much of each is read.

    Attributes:
        folder: has `wikipedia/` and `web/`; None is `evidence/` beside the file's own folder.
        most_words: the words of a document's beginning.
    """

    folder: Path | None = None
    most_words: int = 400


BESIDE = Evidence()
"""The documents where the published archive has them."""


@dataclass(frozen=True, eq=False)
class TriviaQuestion(Question):
    """A question of TriviaQA with one of the documents that may answer it.

    Attributes:
        key: what the official figures count: the question, or on the web the question with its
            document.
    """

    key: str = ""


def is_trivia(content: Any) -> bool:
    """Whether a file is of TriviaQA's form.

    Example:
        >>> is_trivia({"Data": [], "Domain": "Web"}), is_trivia({"data": []})
        (True, False)
    """
    return isinstance(content, Mapping) and "Data" in content


def trivia_questions(
    path: Path, content: Mapping[str, Any], evidence: Evidence, *, training: bool
) -> Iterator[TriviaQuestion]:
    """Gives each question with each of its documents.

    Args:
        path: the file, for messages.
        content: what it holds.
        evidence: the documents.
        training: only with the documents that have an alias of the answer.

    Of a file of verified questions only these and their verified documents are taken. A missing
    document counts as an empty one, as in the official figures. A document that lies out of the
    folder, by its name or by a link, is refused: its words would stand among the answers.

    Raises:
        UserError: the file is not of TriviaQA's form, none of the documents is there, or one lies
            elsewhere.
    """
    folder = evidence.folder or path.parent.parent / "evidence"
    pairs = _Pairs(path, content)
    if not any(_is_file(_document(path, folder, file)) for _, file, _ in pairs):
        raise UserError(
            f"{path}: none of its documents is in {folder}; unpack the evidence there, or name its "
            "folder by `evidence_dir`."
        )
    missing = without = count = 0
    for entry, file, page in pairs:
        document, count = _document(path, folder, file), count + 1
        there = _is_file(document)
        if not there:
            if not missing:
                _LOGGER.warning(
                    "%s: question %s: %s is missing.",
                    path,
                    shown(entry.get("QuestionId")),
                    shown(str(document))[1:-1],
                )
            missing += 1
        text = _beginning(document, evidence.most_words) if there else ""
        question = _question(path, content, entry, page, text)
        if question.answers or not training:
            yield question
        else:
            without += 1
    if missing:
        _LOGGER.warning("%s: %d of %d documents are missing.", path, missing, count)
    if without:
        _LOGGER.info(
            "%s: left out %d of %d documents that have no answer in their first %d words.",
            path,
            without,
            count,
            evidence.most_words,
        )


def trivia_right_answers(path: Path, content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The `Answer` objects of a file by what the official figures count; no document is read.

    On Wikipedia a question without any document is counted too, and nobody can answer it.

    Args:
        path: the file, for messages.
        content: what it holds.

    Raises:
        UserError: the file is not of TriviaQA's form, or a question in it has no answer.
    """
    answers, without = dict[str, Mapping[str, Any]](), 0
    for entry in _entries(path, content):
        pages = [page for _, page in _pages(content, entry, path)]
        keys = [_key(content, entry, page) for page in pages]
        if _counts_questions(content) and not pages:
            keys, without = [str(entry.get("QuestionId"))], without + 1
        answer = entry.get("Answer") or {}
        where = f"question {shown(entry.get('QuestionId'))}: Answer"
        for key in keys:
            if _of_kind(answer, Mapping, path, where).get("NormalizedAliases") is None:
                raise UserError(
                    f"{path}: question {shown(key)} has no answer to evaluate by; name a file "
                    "with answers."
                )
            for kind in ("NormalizedAliases", "HumanAnswers"):
                _names(answer, kind, path, where)
            answers[key] = {name: value for name, value in answer.items() if value is not None}
    if without:
        _LOGGER.warning(
            "%s: %d of %d questions have no document and count as wrong, as in the official "
            "figures.",
            path,
            without,
            len(answers),
        )
    return answers


class _Pairs:
    """Each question's entry with each of its documents: the file in `evidence/`, and its entry."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self._path, self._content = path, content

    def __iter__(self) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
        for entry in _entries(self._path, self._content):
            for file, page in _pages(self._content, entry, self._path):
                yield entry, file, page


def _entries(path: Path, content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The questions of a file, of verified ones only these."""
    verified = content.get("VerifiedEval") is True
    for number, value in enumerate(_of_kind(content.get("Data"), list, path, "'Data'")):
        entry = _of_kind(value, Mapping, path, f"question {number} of 'Data'")
        if not verified or entry.get("QuestionPartOfVerifiedEval"):
            yield entry


def _pages(
    content: Mapping[str, Any], entry: Mapping[str, Any], path: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The documents of a question: where each lies in `evidence/`, and its entry."""
    verified, web = content.get("VerifiedEval") is True, content.get("Domain") == "Web"
    where = f"question {shown(entry.get('QuestionId'))}"
    for name, folder in _FOLDERS.items():
        for page in _of_kind(entry.get(name) or [], list, path, f"{where}: {name}"):
            file = _of_kind(page, Mapping, path, f"{where}: {name}").get("Filename")
            if not (verified and web) or page.get("DocPartOfVerifiedEval"):
                yield f"{folder}/{_of_kind(file, str, path, f'{where}: Filename')}", page


def _question(
    path: Path,
    content: Mapping[str, Any],
    entry: Mapping[str, Any],
    page: Mapping[str, Any],
    text: str,
) -> TriviaQuestion:
    where = f"question {shown(entry.get('QuestionId'))}: Answer"
    aliases = _of_kind(entry.get("Answer") or {}, Mapping, path, where)
    names = [
        alias
        for kind in ("NormalizedAliases", "Aliases")
        for alias in _names(aliases, kind, path, where)
    ]
    found = find_alias(text, names)
    return TriviaQuestion(
        _identifier(entry, page),
        str(entry.get("Question", "")),
        Passage(str(page.get("Title", page["Filename"])), text),
        () if found is None else (found,),
        key=_key(content, entry, page),
    )


def _names(answer: Mapping[str, Any], kind: str, path: Path, where: str) -> list[str]:
    """The aliases of a kind, such as `HumanAnswers`."""
    names = _of_kind(answer.get(kind) or [], list, path, f"{where}: {kind}")
    return [_of_kind(alias, str, path, f"{where}: an alias") for alias in names]


def _identifier(entry: Mapping[str, Any], page: Mapping[str, Any]) -> str:
    return f"{entry.get('QuestionId')}--{page['Filename']}"


def _key(content: Mapping[str, Any], entry: Mapping[str, Any], page: Mapping[str, Any]) -> str:
    """The number that the official figures count; see `TriviaQuestion.key`."""
    if _counts_questions(content):
        return str(entry.get("QuestionId"))
    return _identifier(entry, page)


def _counts_questions(content: Mapping[str, Any]) -> bool:
    """Whether the official figures count questions, rather than questions with their documents."""
    return content.get("Domain") == "Wikipedia"


def _document(path: Path, folder: Path, file: str) -> Path:
    """Where a document lies: in its own folder, whatever its name and its links say.

    Raises:
        UserError: it lies elsewhere.
    """
    kind, _, name = file.partition("/")
    document, within = folder / file, folder / kind
    try:
        inside = name and real_path(document).is_relative_to(real_path(within))
    except (OSError, ValueError, RuntimeError):  # too long, with NUL, or links in a circle
        inside = False
    if not inside or ".." in Path(name).parts or Path(name).is_absolute():
        raise UserError(
            f"{path}: the Filename {shown(name)} does not lie in {within}, where documents are; "
            "mend it, or leave its question out."
        )
    return document


def _is_file(document: Path) -> bool:
    try:
        return document.is_file()
    except OSError:  # a name that no file can have
        return False


def _beginning(document: Path, most_words: int) -> str:
    """The first words of a document."""
    try:
        with document.open("rb") as file:
            return first_words(file.read(_MOST_BYTES).decode("utf-8", "replace"), most_words)
    except OSError as error:
        raise UserError(f"{document}: cannot be read ({reason_of(error)}); mend it.") from error


def first_words(text: str, most: int) -> str:
    """The beginning of a text, its blanks as they are.

    Example:
        >>> first_words("It  rained all day.", 2)
        'It  rained'
    """
    last = next(islice(_NOT_BLANK.finditer(text), most - 1, None), None)
    return text if last is None else text[: last.end()]


def find_alias(text: str, aliases: Sequence[str]) -> PlacedText | None:
    """Finds where an alias stands first, as whole words, the longest one there.

    Case, punctuation and articles do not count, as in TriviaQA's own figures.

    Returns:
        The text's own characters; None where no alias stands in it.

    Example:
        >>> find_alias("He wrote The Lord of the Rings.", ["lord of rings", "lord"])
        PlacedText(text='Lord of the Rings', start=13)
        >>> find_alias("a job", ["ob"])
    """
    matches = [match for match in _WORDS.finditer(text) if match[0].lower() not in _ARTICLES]
    words = [match[0].lower() for match in matches]
    wanted = dict[str, set[tuple[str, ...]]]()
    for alias in aliases:
        parts = tuple(word for word in _WORDS.findall(alias.lower()) if word not in _ARTICLES)
        if parts:
            wanted.setdefault(parts[0], set()).add(parts)
    for first, word in enumerate(words):
        for parts in sorted(wanted.get(word, ()), key=len, reverse=True):
            last = first + len(parts)
            if tuple(words[first:last]) == parts:
                start = matches[first].start()
                return PlacedText(text[start : matches[last - 1].end()], start)
    return None


_IN_WORDS: Mapping[type, str] = {str: "text", list: "a list", Mapping: "an object"}


def _of_kind(value: Any, kind: type, path: Path, what: str) -> Any:
    if not isinstance(value, kind):
        raise UserError(
            f"{path}: {what} is {shown(value)}, not {_IN_WORDS[kind]}; name a file in TriviaQA's "
            "form."
        )
    return value


TRIVIA_PREDICTIONS = "triviaqa_predictions.json"


class TriviaAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        score: of the answer: the sum of its two logits.
        text: the answer.
    """

    score: float
    text: str


def best_of_documents(
    answered: Iterable[tuple[Question, Prediction]],
) -> dict[str, TriviaAnswer]:
    """The surest answer of each question over all its documents, the first of equals.

    Returns:
        By what the official figures count.
    """
    best = dict[str, TriviaAnswer]()
    for question, prediction in answered:
        if not isinstance(question, TriviaQuestion):
            raise TypeError("the questions are not TriviaQA's")
        guess = prediction.best(math.inf)
        before = best.get(question.key)
        score = guess.score if guess.end else -math.inf  # a document without any span
        if before is None or score > before.score:
            best[question.key] = TriviaAnswer(score, guess.text)
    return best


def trivia_figures(
    best: Mapping[str, TriviaAnswer], right: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The official figures, in percent.

    Args:
        best: the answer to each question that was asked.
        right: the `Answer` objects of all questions that count.
    """
    return trivia_scores({key: answer.text for key, answer in best.items()}, right)


def write_trivia_predictions(folder: Path, best: Mapping[str, TriviaAnswer]) -> Path:
    """Writes the file that TriviaQA's official script takes: an object of answers."""
    path = folder / TRIVIA_PREDICTIONS
    with open_whole(path) as file:
        json.dump({key: answer.text for key, answer in best.items()}, file, indent=4)
        file.write("\n")
    return path
