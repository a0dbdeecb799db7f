"""Questions and passages, read from files in SQuAD's form (1.1, 2.0, KorQuAD 1.0) or TriviaQA's.

TriviaQA's answers are not marked: the first position in a document where one of the
answer's aliases occurs is taken for it (distant supervision). The paper on BERT trained on the
first 400 words of Wikipedia's documents, those with an alias (section 4.2, the footnote).
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, reading, shown
from keras_bert_impl.files import real_path
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.fine_tuning.counts import Counted
from pipelines.tables.lines import read_json

_LOGGER = logging.getLogger(__name__)


_BLANKS = " \t\r\n\u202f"
_IS_BLANK = np.isin(np.arange(max(map(ord, _BLANKS)) + 2), [ord(blank) for blank in _BLANKS])
_WORDS = re.compile(f"[^{_BLANKS}]+")
_OTHER_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f"  # those of ASCII that only Python cuts at


@dataclass(frozen=True, eq=False)
class Passage:
    r"""A text in which answers are looked for.

    A word is what stands between two of the original's blanks: space, tab, carriage return, line
    feed and the narrow no-break space (not the no-break space).

    Example:
        >>> passage = Passage("Rain", " It  rained.\n")
        >>> passage.words, passage.word_of_character.tolist()
        (['It', 'rained.'], [-1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    """

    article: str
    text: str

    @cached_property
    def words(self) -> list[str]:
        if self.text.isascii() and not any(blank in self.text for blank in _OTHER_BLANKS):
            return self.text.split()  # several times as fast
        return _WORDS.findall(self.text)

    @cached_property
    def word_of_character(self) -> NDArray[np.int32]:
        """The word that each character is of; a blank is of the word in front of it, or -1."""
        encoding, kind = ("ascii", "u1") if self.text.isascii() else ("utf-32-le", "<u4")
        # A JSON file may hold half of a surrogate pair.
        codes = np.frombuffer(self.text.encode(encoding, "surrogatepass"), kind)
        blank = _IS_BLANK.take(codes, mode="clip")
        begins = ~blank
        begins[1:] &= blank[:-1]
        return np.cumsum(begins, dtype=np.int32) - 1


class PlacedText(NamedTuple):
    """An answer as a file has it."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question about a passage."""

    identifier: str
    text: str
    passage: Passage
    answers: tuple[PlacedText, ...] = ()
    is_impossible: bool = False

    @cached_property
    def answer_words(self) -> tuple[int, int] | None:
        """The first and the last word of the first answer; None without one where it should be.

        As in the original, words are compared with single blanks between them.
        """
        if self.is_impossible or not self.answers:
            return None
        text, start = self.answers[0]
        word_of, end = self.passage.word_of_character, start + len(text)
        wanted = " ".join(text.split())
        if not (wanted and start >= 0 and end <= len(word_of)):
            return None
        first, last = int(word_of[start]), int(word_of[end - 1])
        found = wanted in " ".join(self.passage.words[first : last + 1])
        return (max(first, 0), last) if found else None


WANTED = "a file in SQuAD's form"
_KINDS = {str: "text", int: "a whole number", list: "a list"}


def read_questions(
    path: Path,
    *,
    version_2_with_negative: bool,
    training: bool = False,
    evidence_dir: Path | None = None,
    evidence_words: int = 400,
    encoding: TextEncoding = UTF_8,
) -> Iterator[Question]:
    """Reads the questions of a file in their order; for training those that can be trained on.

    For training a question whose first answer is not where `answer_start` says is left out, as in
    the original; further answers are not used; the log says how many there are. Where text is to be
    composed, passages, questions and answers are, and the places of answers with them, but not
    TriviaQA's documents.
    """
    content, seen = read_json(path, WANTED, encoding), set[str]()
    if is_trivia(content):
        folder = evidence_dir or path.parent.parent / "evidence"
        questions = _trivia_questions(path, content, folder, evidence_words, training=training)
    else:
        questions = _squad_questions(path, content, encoding, training=training)
    for question in _trainable(path, questions) if training else questions:
        if question.identifier in seen:
            raise UserError(
                f"{path}: {_name_of(question)} comes a second time; give every question an `id` of "
                "its own."
            )
        seen.add(question.identifier)
        if question.is_impossible and not version_2_with_negative:
            raise UserError(
                f"{path}: {_name_of(question)} is impossible to answer; set "
                "`version_2_with_negative`."
            )
        yield question
    if not seen:
        raise UserError(f"{path}: has no questions; name {WANTED}.")


def _trainable(path: Path, questions: Iterable[Question]) -> Iterator[Question]:
    left_out, further = Counted(), Counted()
    for question in questions:
        name = _name_of(question)
        if not (question.is_impossible or question.answers):
            raise UserError(f"{path}: {name} has no answer to train on; remove it.")
        if len(question.answers) > 1 and not question.is_impossible:
            further.add(name)
        if question.is_impossible or question.answer_words is not None:
            yield question
        else:
            text, start = question.answers[0]
            left_out.add(f"{name}: {shown(text)} is not at {start}")
    left_out.warn(path, "questions left out, whose answer is not where `answer_start` says")
    further.warn(path, "questions of which only the first answer is trained")


def _name_of(question: Question) -> str:
    return f"question {shown(question.identifier)} (article {shown(question.passage.article)})"


def _squad_questions(
    path: Path, content: Any, encoding: TextEncoding, *, training: bool
) -> Iterator[Question]:
    with reading(path, WANTED):
        articles = _a(list, content["data"])
    for number, article in enumerate(articles):
        title = article.get("title", f"number {number}") if isinstance(article, dict) else ""
        with reading(f"{path}: article {shown(title)}", WANTED):
            for paragraph in _a(list, article["paragraphs"]):
                context = _a(str, paragraph["context"])
                passage = Passage(str(title), encoding.composed(context))
                for entry in _a(list, paragraph["qas"]):
                    answers = tuple(
                        _placed(answer, context, encoding, needed=training)
                        for answer in _a(list, entry.get("answers") or [])
                    )
                    text = encoding.composed(_a(str, entry["question"]))
                    impossible = entry.get("is_impossible") is True
                    yield Question(_a(str, entry["id"]), text, passage, answers, impossible)


def _a(kind: type, value: Any) -> Any:
    """The value, which is of a kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{shown(value)} is not {_KINDS[kind]}")
    return value


def _placed(answer: Any, context: str, encoding: TextEncoding, *, needed: bool) -> PlacedText:
    """An answer and its place, or -1 where it has none and none is needed.

    What is before it is composed alone, as no answer begins inside.
    """
    text = _a(str, answer["text"])
    start = _a(int, answer["answer_start"] if needed else answer.get("answer_start", -1))
    if encoding.composes and start >= 0:
        start = len(encoding.composed(context[:start]))
    return PlacedText(encoding.composed(text), start)


_FORM = "a file in TriviaQA's form"
_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
_NOT_BLANK, _WORDS_OF_ALIAS = re.compile(r"\S+"), re.compile(r"[^\W_]+")
_ARTICLES = {"a", "an", "the"}
_GAP = r"[\W_]+(?:(?:an?|the)[\W_]+)*"  # between two words of an alias
_MOST_BYTES = 64 << 20  # of a document's beginning
BETWEEN = "--"
"""Between a question's name and its document's."""


def is_trivia(content: Any) -> bool:
    """Whether a file is of TriviaQA's form."""
    return isinstance(content, Mapping) and "Data" in content


def counts_questions(content: Any) -> bool:
    """Whether TriviaQA's figures count questions, rather than questions with documents."""
    return bool(content.get("Domain") == "Wikipedia")


def _trivia_questions(
    path: Path, content: Any, folder: Path, most_words: int, *, training: bool
) -> Iterator[Question]:
    """Gives each question with each of its documents; for training those that have an alias.

    A missing document counts as an empty one, as in the official figures.
    """
    count = missing = 0
    with reading(path, _FORM):
        for name, entry, kind, page in _pairs(content):
            document = _document(path, folder / kind, page["Filename"])
            count += 1
            text = ""
            if document.is_file():
                with document.open("rb") as file:
                    text = file.read(_MOST_BYTES).decode("utf-8", "replace")
            else:
                missing += 1
            text = first_words(text, most_words)
            answer = entry.get("Answer") or {}
            aliases = _texts(answer.get("NormalizedAliases")) + _texts(answer.get("Aliases"))
            found = find_alias(text, aliases)
            if found or not training:
                passage = Passage(str(page.get("Title", page["Filename"])), text)
                answers = (found,) if found else ()
                yield Question(name, str(entry.get("Question", "")), passage, answers)
    if count == missing:
        raise UserError(
            f"{path}: none of its documents is in {folder}; unpack the evidence there, or name its "
            "folder by `evidence_dir`."
        )
    if missing:
        _LOGGER.warning("%s: %d of %d documents are missing.", path, missing, count)


def trivia_right_answers(path: Path, content: Any) -> dict[str, Mapping[str, Any]]:
    """The right answers by what the official figures count; no document is read."""
    with reading(path, _FORM):
        if counts_questions(content):
            keys = {entry["QuestionId"]: entry for entry in _entries(content)}
        else:
            keys = {name: entry for name, entry, *_ in _pairs(content)}
        for key, entry in keys.items():
            if (entry.get("Answer") or {}).get("NormalizedAliases") is None:
                raise UserError(
                    f"{path}: question {shown(key)} has no answer to evaluate by; name a file with "
                    "answers."
                )
        return {
            key: {
                "NormalizedAliases": _texts(_a(list, entry["Answer"]["NormalizedAliases"])),
                "HumanAnswers": _texts(entry["Answer"].get("HumanAnswers")),
            }
            for key, entry in keys.items()
        }


def _entries(content: Any) -> Iterator[Any]:
    """The questions of a file, of verified ones only these."""
    for entry in content["Data"]:
        if not content.get("VerifiedEval") or entry.get("QuestionPartOfVerifiedEval"):
            yield entry


def _pairs(content: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Each question with each of its documents: their name, and the folder that this lies in."""
    only_verified = content.get("VerifiedEval") is True and content.get("Domain") == "Web"
    for entry in _entries(content):
        for pages, folder in _FOLDERS.items():
            for page in entry.get(pages) or ():
                if not only_verified or page.get("DocPartOfVerifiedEval"):
                    name = f"{entry['QuestionId']}{BETWEEN}{page['Filename']}"
                    yield name, entry, folder, page


def _texts(values: Any) -> list[str]:
    """The texts in a list, which may be missing."""
    return [_a(str, text) for text in values or []]


def _document(path: Path, folder: Path, name: str) -> Path:
    """Where a document is: in its folder, whatever its name and its links say."""
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
    """The beginning of a text, its blanks as they are."""
    last = next(islice(_NOT_BLANK.finditer(text), most - 1, None), None)
    return text if last is None else text[: last.end()]


def find_alias(text: str, aliases: Sequence[str]) -> PlacedText | None:
    """Finds where an alias occurs first, as whole words, the longest one there.

    Case, punctuation and articles do not count, as in TriviaQA's own figures.

    Example:
        >>> find_alias("He wrote The Lord of the Rings.", ["lord of rings", "lord"])
        PlacedText(text='Lord of the Rings', start=13)
    """
    wanted = {
        tuple(word for word in _WORDS_OF_ALIAS.findall(alias.lower()) if word not in _ARTICLES)
        for alias in aliases
    }
    longest_first = sorted(wanted - {()}, key=lambda words: (-len(words), words))
    some = "|".join(_GAP.join(map(re.escape, words)) for words in longest_first)
    found = re.search(rf"(?<![^\W_])(?:{some})(?![^\W_])", text, re.IGNORECASE) if some else None
    return PlacedText(found[0], found.start()) if found else None
