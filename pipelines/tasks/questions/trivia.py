"""TriviaQA's published files read as questions with passages: `qa/` and `evidence/`.

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
from typing import Any, NotRequired, TypedDict

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_whole, real_path
from keras_bert_impl.json_files import typed
from pipelines.tasks.questions.answers import Prediction
from pipelines.tasks.questions.passages import Passage, PlacedText, Question

_LOGGER = logging.getLogger(__name__)

TRIVIA_PREDICTIONS = "triviaqa_predictions.json"
_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
_NOT_BLANK, _WORDS, _ARTICLES = re.compile(r"\S+"), re.compile(r"[^\W_]+"), {"a", "an", "the"}
_BETWEEN = "--"  # a question's name and its document's
_MOST_BYTES = 64 << 20  # of a document's beginning

_Aliases = list[str] | None


class _Page(TypedDict):
    Filename: str
    Title: NotRequired[str]
    DocPartOfVerifiedEval: NotRequired[bool]


class _Answer(TypedDict):
    NormalizedAliases: NotRequired[_Aliases]
    Aliases: NotRequired[_Aliases]
    HumanAnswers: NotRequired[_Aliases]


class _Entry(TypedDict):
    QuestionId: str
    Question: NotRequired[str]
    Answer: NotRequired[_Answer | None]
    EntityPages: NotRequired[list[_Page] | None]
    SearchResults: NotRequired[list[_Page] | None]
    QuestionPartOfVerifiedEval: NotRequired[bool]


class _File(TypedDict):
    Data: list[_Entry]
    Domain: NotRequired[str]
    VerifiedEval: NotRequired[bool]


@dataclass(frozen=True)
class Evidence:
    """Where TriviaQA's documents are, and how many words of each beginning are read.

    The folder has `wikipedia/` and `web/`; None is `evidence/` beside the file's own folder.
    """

    folder: Path | None = None
    most_words: int = 400


BESIDE = Evidence()
"""The documents where the published archive has them."""


def is_trivia(content: Any) -> bool:
    """Whether a file is of TriviaQA's form.

    Example:
        >>> is_trivia({"Data": [], "Domain": "Web"}), is_trivia({"data": []})
        (True, False)
    """
    return isinstance(content, Mapping) and "Data" in content


def trivia_questions(
    path: Path, content: Any, evidence: Evidence, *, training: bool
) -> Iterator[Question]:
    """Gives each question with each of its documents; for training those that have an alias.

    A missing document counts as an empty one, as in the official figures. A document that lies out
    of the folder, by its name or by a link, is refused: its words would stand among the answers.
    """
    folder = evidence.folder or path.parent.parent / "evidence"
    count = missing = without = 0
    for entry, kind, page in _pairs(path, content):
        document, text = _document(path, folder / kind, page["Filename"]), ""
        count += 1
        try:
            with document.open("rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            if not missing:
                _LOGGER.warning("%s: %s is missing.", path, shown(str(document))[1:-1])
            missing += 1
        text = first_words(text, evidence.most_words)
        answer = entry.get("Answer") or _Answer()
        names = [*(answer.get("NormalizedAliases") or ()), *(answer.get("Aliases") or ())]
        found = find_alias(text, names)
        without += found is None
        if found or not training:
            passage = Passage(page.get("Title", page["Filename"]), text)
            answers = (found,) if found else ()
            yield Question(_name(entry, page), entry.get("Question", ""), passage, answers)
    if count == missing:
        raise UserError(
            f"{path}: none of its documents is in {folder}; unpack the evidence there, or name its "
            "folder by `evidence_dir`."
        )
    if missing:
        _LOGGER.warning("%s: %d of %d documents are missing.", path, missing, count)
    if without and training:
        _LOGGER.info(
            "%s: left out %d of %d documents that have no answer in their first %d words.",
            *(path, without, count, evidence.most_words),
        )


def trivia_right_answers(path: Path, content: Any) -> dict[str, Mapping[str, Any]]:
    """The `Answer` objects of a file by what the official figures count; no document is read.

    These are the questions, those without a document too, or on the web each question with each of
    its documents.
    """
    pairs = {_name(entry, page): entry for entry, _, page in _pairs(path, content)}
    keys = pairs
    if _counts_questions(path, content):
        keys = {entry["QuestionId"]: entry for entry in _entries(path, content)}
        if without := len(keys.keys() - {entry["QuestionId"] for entry in pairs.values()}):
            _LOGGER.warning(
                "%s: %d of %d questions have no document and count as wrong, as in the official "
                "figures.",
                *(path, without, len(keys)),
            )
    right = dict[str, Mapping[str, Any]]()
    for key, entry in keys.items():
        answer = entry.get("Answer") or _Answer()
        if answer.get("NormalizedAliases") is None:
            raise UserError(
                f"{path}: question {shown(key)} has no answer to evaluate by; name a file with "
                "answers."
            )
        right[key] = {name: value for name, value in answer.items() if value is not None}
    return right


def best_of_documents(
    path: Path, content: Any, answered: Iterable[tuple[Question, Prediction]]
) -> dict[str, str]:
    """The surest answer of each question over all its documents, by what the figures count."""
    whole, best = _counts_questions(path, content), dict[str, tuple[float, str]]()
    for question, prediction in answered:
        name = question.identifier
        key, guess = name.partition(_BETWEEN)[0] if whole else name, prediction.best(math.inf)
        score = guess.score if guess.end else -math.inf  # a document without any span
        if key not in best or score > best[key][0]:
            best[key] = score, guess.text
    return {key: text for key, (_, text) in best.items()}


def write_trivia_predictions(folder: Path, best: Mapping[str, str]) -> Path:
    """Writes the file that TriviaQA's official script takes: an object of answers."""
    with open_whole(folder / TRIVIA_PREDICTIONS) as file:
        file.write(json.dumps(best, indent=4) + "\n")
    return folder / TRIVIA_PREDICTIONS


def _file(path: Path, content: Any) -> _File:
    found: _File = typed(content, _File, str(path), "name a file in TriviaQA's form")
    return found


def _entries(path: Path, content: Any) -> Iterator[_Entry]:
    """The questions of a file, of verified ones only these."""
    file = _file(path, content)
    for entry in file["Data"]:
        if not file.get("VerifiedEval") or entry.get("QuestionPartOfVerifiedEval"):
            yield entry


def _pairs(path: Path, content: Any) -> Iterator[tuple[_Entry, str, _Page]]:
    """Each question with each of its documents, and the folder that this lies in."""
    only_verified = content.get("VerifiedEval") is True and content.get("Domain") == "Web"
    for entry in _entries(path, content):
        for name, folder in _FOLDERS.items():
            for page in entry.get(name) or ():  # type: ignore[attr-defined]
                if not only_verified or page.get("DocPartOfVerifiedEval"):
                    yield entry, folder, page


def _name(entry: _Entry, page: _Page) -> str:
    return f"{entry['QuestionId']}{_BETWEEN}{page['Filename']}"


def _counts_questions(path: Path, content: Any) -> bool:
    """Whether the official figures count questions, rather than questions with documents."""
    return _file(path, content).get("Domain") == "Wikipedia"


def _document(path: Path, folder: Path, name: str) -> Path:
    """Where a document lies: in its folder, whatever its name and its links say."""
    document = folder / name
    try:
        inside = name and real_path(document).is_relative_to(real_path(folder))
    except (OSError, ValueError, RuntimeError):  # too long, with NUL, or links in a circle
        inside = False
    if not inside or ".." in Path(name).parts or Path(name).is_absolute():
        raise UserError(
            f"{path}: the Filename {shown(name)} does not lie in {folder}, where documents are; "
            "fix it, or leave its question out."
        )
    return document


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
