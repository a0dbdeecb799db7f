"""The columns of a table that hold what is looked for: named by the user, or guessed if plain."""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.tokenization.reference import as_name
from pipelines.tables.files import Record, TableFile

_LOGGER = logging.getLogger(__name__)

_OF_CELLS = ("csv", "tsv")
_LABELS = (
    *("label", "labels", "class", "category", "target", "sentiment", "gold_label", "intent"),
    *("score", "rating", "stars", "topic", "is_duplicate", "quality", "emotion", "polarity"),
    "stance",
    *("감정", "감성", "라벨", "레이블", "분류", "카테고리", "평점", "별점", "점수", "주제", "의도"),
    *("标签", "標籤", "类别", "類別", "分类", "分類", "情感", "情绪", "评分", "評分"),
    *("ラベル", "感情", "カテゴリ", "カテゴリー", "評価", "極性"),
    *("klasse", "kategorie", "stimmung", "thema", "étiquette", "classe", "catégorie", "polarité"),
    *("etiqueta", "clase", "categoría", "sentimiento", "polaridad", "rótulo", "categoria"),
    *("sentimento", "etichetta", "метка", "класс", "категория", "тональность", "оценка"),
)
TEXTS = (
    *("text", "sentence", "review", "document", "content", "comment", "comment_text", "tweet"),
    *("utterance", "message", "question", "sms", "body", "abstract", "review_text", "title"),
    *("리뷰", "문장", "텍스트", "내용", "본문", "댓글", "문서", "제목", "질문", "발화", "후기"),
    *("文本", "句子", "内容", "內容", "评论", "評論", "文章", "正文", "标题", "標題"),
    *("テキスト", "文", "本文", "レビュー", "コメント", "質問", "発話", "タイトル"),
    *("satz", "kommentar", "inhalt", "nachricht", "dokument", "titel", "frage", "texte", "phrase"),
    *("avis", "commentaire", "contenu", "titre", "texto", "frase", "reseña", "comentario"),
    *("contenido", "mensaje", "documento", "título", "pregunta", "testo", "recensione"),
    *("текст", "предложение", "отзыв", "комментарий", "сообщение", "вопрос"),
)
PAIRS_OF_A_SEARCH = (
    *(("anchor", "positive"), ("query", "positive"), ("query", "document"), ("query", "answer")),
    *(("question", "answer"), ("question", "context"), ("question", "document")),
    *(("질문", "답변"), ("질문", "답"), ("질문", "본문"), ("질문", "문서")),
)
PAIRS_OF_TEXTS = (
    *PAIRS_OF_A_SEARCH,
    *(("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("sentence_a", "sentence_b")),
    *(("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"), ("text", "text_pair")),
    *(("text", "text_b"), ("question", "sentence"), ("question", "passage"), ("query", "passage")),
    *(("premise", "hypothesis"), ("question1", "question2"), ("question_1", "question_2")),
    *(("#1 string", "#2 string"), ("s1", "s2"), ("first", "second")),
    *(("문장1", "문장2"), ("전제", "가설"), ("질문1", "질문2"), ("句子1", "句子2"), ("文1", "文2")),
)
_ANSWERS = {"answer", "답변", "답"}
_NAMES_OF_TEXTS = {*TEXTS, *(name for pair in PAIRS_OF_TEXTS for name in pair)}


@dataclass(frozen=True)
class Columns:
    """Where a record has what."""

    text: str
    text_pair: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The columns of the texts."""
        return [self.text] if self.text_pair is None else [self.text, self.text_pair]

    def read_texts(self, file: TableFile, record: Record) -> tuple[str, str | None]:
        """Reads the text, or both texts."""
        first, *second = (text_of(file, record, column) for column in self.texts)
        return first, second[0] if second else None


def choose_columns(
    file: TableFile,
    text_column: str | None,
    text_pair_column: str | None,
    label_columns: Sequence[str],
    *,
    labelled: bool,
) -> Columns:
    """Finds the columns that the user names, and guesses the others where it is plain.

    Example:
        >>> file = TableFile("train.tsv", "tsv", ("id", "document", "label"))
        >>> choose_columns(file, None, None, (), labelled=True)
        Columns(text='document', text_pair=None, labels=('label',))
    """
    labels = tuple(map(as_name, label_columns))
    text = None if text_column is None else as_name(text_column)
    pair = None if text_pair_column is None else as_name(text_pair_column)
    if not labels:
        others = dict.fromkeys(column for column in file.columns if column not in (text, pair))
        guess = [column for column in others if column.lower() in _LABELS]
        guess = [column for column in guess if column.lower() == "label"] or guess
        if len(guess) == 1:
            labels = (guess[0],)
            _LOGGER.info("%s: the label is taken from the column %r.", file.name, guess[0])
        elif labelled:
            raise _not_clear(file, "the label", "label_column", guess)
    if text is None:
        text, guessed_pair = _guess_texts(file, {*labels, pair})
        pair = pair or guessed_pair
        second = f" and {shown(pair)}" if pair else ""
        _LOGGER.info("%s: the text is taken from the column %r%s.", file.name, text, second)
    columns = Columns(text, pair, labels)
    check_columns(file, [*columns.texts, *(labels if labelled else ())])
    return columns


def choose_text_column(file: TableFile) -> str:
    """Finds the column of a record's one text where it is plain; there may be labels or not."""
    if pairs := pairs_in(file.columns):
        raise _not_clear(file, "the text", "text_column", pairs[0])
    text, _ = _guess_texts(file, {column for column in file.columns if column.lower() in _LABELS})
    check_columns(file, [text])
    _LOGGER.info("%s: the text is taken from the column %r.", file.name, text)
    return text


def pairs_in(columns: Iterable[str]) -> list[tuple[str, str]]:
    """The columns of two texts that belong together, of each pair of names that is there.

    Beside a passage an answer is no text that is read.
    """
    found = {column.lower(): column for column in columns}
    if "text_a" in found:
        found.pop("text", None)
    pairs = [(found[a], found[b]) for a, b in PAIRS_OF_TEXTS if {a, b} <= found.keys()]
    return [pair for pair in pairs if pair[1].lower() not in _ANSWERS] or pairs


def check_columns(file: TableFile, needed: Sequence[str]) -> None:
    """Refuses a file in which a column is missing or there twice."""
    of_header = file.header and file.form in _OF_CELLS
    where = f"{file.name}: line 1" + (", the header," if of_header else "")
    for column in needed:
        count = file.columns.count(column)
        if count == 0:
            raise UserError(
                f"{where} has no column {shown(column)} (it has "
                f"{', '.join(map(repr, file.columns[:12]))}); name another column or correct the "
                "file."
            )
        if count > 1:
            raise UserError(
                f"{where} has the column {shown(column)} {count} times; rename all but one."
            )
    if len(set(needed)) < len(needed):
        raise UserError(
            f"{file.name}: one column is named for two things ({', '.join(needed)}); name "
            "each once."
        )


def check_first_row(
    file: TableFile, texts: Sequence[str], remedy: str = ", or say with `header` which it is"
) -> None:
    """Refuses a first row that names columns, where columns are given by numbers."""
    if file.header or file.form not in _OF_CELLS:
        return
    cells = [next(file.records()).values[column] for column in texts]
    if all(cell.lower() in _NAMES_OF_TEXTS for cell in cells):
        raise UserError(
            f"{file.name}: line 1 seems to name the columns ({', '.join(map(repr, cells))}), but "
            "columns that are given by numbers mean that no line does; name the columns"
            f"{remedy}."
        )


def _guess_texts(file: TableFile, taken: set[str | None]) -> tuple[str, str | None]:
    others = dict.fromkeys(column for column in file.columns if column not in taken)
    pairs = pairs_in(others) if None in taken else []  # no second text was named
    if len(pairs) == 1:
        return pairs[0]
    # The only column of cells may be a first text that no header stands above.
    plain = len(others) == 1 and (len(file.columns) > 1 or file.form not in _OF_CELLS)
    found = [column for column in others if plain or column.lower() in TEXTS]
    if len(found) == 1 and not pairs:
        return found[0], None
    raise _not_clear(file, "the text", "text_column", found)


def _not_clear(file: TableFile, what: str, parameter: str, candidates: Sequence[str]) -> UserError:
    several = f" ({' or '.join(map(repr, candidates))})" if len(candidates) > 1 else ""
    has_cells = file.form in _OF_CELLS
    numbers = ", or by its number from 1 if the file has no header" if has_cells else ""
    is_one = has_cells and len(file.columns) == 1
    separated = "; commas, semicolons or tabs separate columns" if is_one else ""
    return UserError(
        f"{file.name}: it is not clear which column is {what}{several}; name it with `{parameter}`"
        f"{numbers} (its columns: {', '.join(map(repr, file.columns[:12]))}{separated})."
    )


def value_of(file: TableFile, record: Record, column: str) -> Any:
    """Gives the value of a record in a column."""
    if column not in record.values:
        raise UserError(
            f"{file.name}: line {record.line} has no {shown(column)}; add it or remove the line."
        )
    return record.values[column]


def text_of(file: TableFile, record: Record, column: str) -> str:
    """Gives the text of a record in a column; "" where a JSON value is null."""
    value = value_of(file, record, column)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UserError(
            f"{file.name}: line {record.line}: the column {shown(column)} is {type_of(value)}, not "
            "text; name another column or write it in quotation marks."
        )
    return value


def type_of(value: Any) -> str:
    """The type of a value in words."""
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")


NO_LABELS = {"None", "nan", "", "-1", "-1.0"}
"""What is published in place of labels, as text."""


def is_blank(value: Any) -> bool:
    """Whether a cell holds nothing, or blanks."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_nan(value: Any) -> bool:
    """Whether a value is what pandas writes into JSON where there is none."""
    return isinstance(value, float) and math.isnan(value)
