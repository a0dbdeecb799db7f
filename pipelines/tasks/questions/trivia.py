"""TriviaQA's published files read as questions with passages: `qa/` and `evidence/`.

Nobody marked where an answer stands, so the first position in a document where one of the answer's
aliases stands is taken for it (distant supervision). The paper on BERT trained on the first 400
words of Wikipedia's documents, those that have an alias among them (section 4.2, the footnote).
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, reading, shown
from keras_bert_impl.files import open_whole, real_path
from keras_bert_impl.json_files import json_text
from pipelines.tasks.questions.answers import Prediction
from pipelines.tasks.questions.passages import Passage, PlacedText, Question

_LOGGER = logging.getLogger(__name__)

TRIVIA_PREDICTIONS = "triviaqa_predictions.json"
_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
_NOT_BLANK, _WORDS, _ARTICLES = re.compile(r"\S+"), re.compile(r"[^\W_]+"), {"a", "an", "the"}
_GAP = r"[\W_]+(?:(?:an?|the)[\W_]+)*"  # between two words of an alias
_BETWEEN = "--"  # a question's name and its document's
_FORM = "a file in TriviaQA's form"
_MOST_BYTES = 64 << 20  # of a document's beginning


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
    count = missing = 0
    with reading(path, _FORM):
        for entry, kind, page in _pairs(content):
            document, text = _document(path, folder / kind, page["Filename"]), ""
            count += 1
            try:
                if not document.is_file():  # a pipe would be waited for
                    raise FileNotFoundError
                with document.open("rb") as file:
                    text = file.read(_MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                missing += 1
            text = first_words(text, evidence.most_words)
            answer = entry.get("Answer") or {}
            found = find_alias(text, _texts(answer, "NormalizedAliases", "Aliases"))
            if found or not training:
                passage = Passage(str(page.get("Title", page["Filename"])), text)
                answers = (found,) if found else ()
                yield Question(_name(entry, page), str(entry.get("Question", "")), passage, answers)
    if count == missing:
        raise UserError(
            f"{path}: none of its documents is in {folder}; unpack the evidence there, or name its "
            "folder by `evidence_dir`."
        )
    if missing:
        _LOGGER.warning("%s: %d of %d documents are missing.", path, missing, count)


def trivia_right_answers(path: Path, content: Any) -> dict[str, Mapping[str, Any]]:
    """The right answers of a file by what the official figures count; no document is read.

    These are the questions, those without a document too, or on the web each question with each of
    its documents.
    """
    with reading(path, _FORM):
        if _counts_questions(content):
            keys = {entry["QuestionId"]: entry for entry in _entries(content)}
        else:
            keys = {_name(entry, page): entry for entry, _, page in _pairs(content)}
        right = dict[str, Mapping[str, Any]]()
        for key, entry in keys.items():
            answer = entry.get("Answer") or {}
            if answer.get("NormalizedAliases") is None:
                raise UserError(
                    f"{path}: question {shown(key)} has no answer to evaluate by; name a file with "
                    "answers."
                )
            right[key] = {x: _texts(answer, x) for x in ("NormalizedAliases", "HumanAnswers")}
    return right


def best_of_documents(
    content: Any, answered: Iterable[tuple[Question, Prediction]]
) -> dict[str, str]:
    """The surest answer of each question over all its documents, by what the figures count."""
    whole, best = _counts_questions(content), dict[str, tuple[float, str]]()
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
        file.write(json_text(best, indent=4) + "\n")
    return folder / TRIVIA_PREDICTIONS


def _entries(content: Any) -> Iterator[Any]:
    """The questions of a file, of verified ones only these."""
    for entry in content["Data"]:
        if not content.get("VerifiedEval") or entry.get("QuestionPartOfVerifiedEval"):
            yield entry


def _pairs(content: Any) -> Iterator[tuple[Any, str, Any]]:
    """Each question with each of its documents, and the folder that this lies in."""
    only_verified = content.get("VerifiedEval") is True and content.get("Domain") == "Web"
    for entry in _entries(content):
        for name, folder in _FOLDERS.items():
            for page in entry.get(name) or ():
                if not only_verified or page.get("DocPartOfVerifiedEval"):
                    yield entry, folder, page


def _name(entry: Any, page: Any) -> str:
    return f"{entry['QuestionId']}{_BETWEEN}{page['Filename']}"


def _texts(answer: Any, *names: str) -> list[str]:
    """The texts in some lists of an answer; a list may be missing."""
    texts = [text for name in names for text in answer.get(name) or []]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{shown(answer)} has lists of something else than texts")
    return texts


def _counts_questions(content: Any) -> bool:
    """Whether the official figures count questions, rather than questions with documents."""
    return bool(content.get("Domain") == "Wikipedia")


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
    wanted = {
        tuple(word for word in _WORDS.findall(alias.lower()) if word not in _ARTICLES)
        for alias in aliases
    }
    longest_first = sorted(wanted - {()}, key=lambda words: (-len(words), words))
    some = "|".join(_GAP.join(map(re.escape, words)) for words in longest_first)
    found = re.search(rf"(?<![^\W_])(?:{some})(?![^\W_])", text, re.IGNORECASE) if some else None
    return PlacedText(found[0], found.start()) if found else None
