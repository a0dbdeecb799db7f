"""Rows of tagged documents: `[CLS] window of the document [SEP]`.

A tag is learned and predicted at the first token of a word, in the one window that shows most of
the text around that token; where characters have tags, at every token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, cut, shown
from keras_bert_impl.tokenization.long_texts import make_windows, owned_tokens, window_tokens
from pipelines.fine_tuning.text_rows import Spans, pack, ranges
from pipelines.metrics.entities import Entity
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.schemes import Scheme

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer


TAG_IDS, UNIT_START, UNIT_END = "tag_ids", "unit_start", "unit_end"


@dataclass(frozen=True)
class TaggedTokens:
    """The tokens of some documents.

    A unit is what a tag is predicted for: a word, or a token where characters have tags. It covers
    items of its document, which are words or characters.
    """

    ids: NDArray[np.int32]  # [tokens of all documents]
    offsets: Numbers  # [documents + 1], where the tokens of each begin
    start: Numbers  # [tokens], the first item of the unit that begins with a token
    end: Numbers  # [tokens], the item after its last one; 0 where no unit begins
    labels: NDArray[np.int32] | None  # [tokens], the unit's tag plus 1; 0 where none begins


def window_stride(max_seq_length: int, doc_stride: int) -> int:
    """Tokens from one window to the next: those that were asked for, or half a window."""
    return doc_stride or -(-(max_seq_length - 2) // 2)


def tag_rows(
    tokens: TaggedTokens, tokenizer: "LineTokenizer", max_seq_length: int, doc_stride: int
) -> Rows:
    """Makes a row for each window of each document.

    Rows have the model's inputs, `unit_start` and `unit_end` (0 where no unit begins, and where
    another window shows more of the text around it) and, with tags, `tag_ids` (0 there, too).
    """
    size, stride = max_seq_length - 2, window_stride(max_seq_length, doc_stride)
    windows = make_windows(np.diff(tokens.offsets), size, stride)
    shown = Spans(tokens.ids, tokens.offsets[windows.document] + windows.start, windows.lengths)
    lengths, arrays = pack(tokenizer.vocabulary, shown)
    number, position = window_tokens(windows)
    source = tokens.offsets[windows.document[number]] + position
    owned = owned_tokens(windows)
    target = ranges(np.cumsum(lengths) - lengths + 1, windows.lengths)  # after [CLS]
    features: dict[str, NDArray | None] = {
        UNIT_START: tokens.start,
        UNIT_END: tokens.end,
        TAG_IDS: tokens.labels,
    }
    for name, values in features.items():
        if values is not None:
            arrays[name] = np.zeros(int(lengths.sum()), np.int32)
            arrays[name][target] = np.where(owned, values[source], 0)
    return Rows(windows.document, lengths, arrays)


def tokenize_words(
    documents: Sequence[Document], tokenizer: "LineTokenizer", labels: Sequence[str]
) -> TaggedTokens:
    """Tokenizes words one by one; the tag of a word stands at its first token.

    A word without a token (of control characters, say) has no unit. All documents have tags, or
    none.
    """
    sentences = [sentence for document in documents for sentence in document.sentences]
    words = [word for sentence in sentences for word in sentence.items]
    block = tokenizer.encode_lines(words)
    has_token = np.diff(block.offsets) > 0  # [words]
    words_before = np.cumsum([0, *(sum(len(x.items) for x in one.sentences) for one in documents)])
    first = block.offsets[:-1][has_token]  # the first token of each word
    start, end = np.zeros([2, len(block.ids)], np.int64)
    before = np.repeat(words_before[:-1], np.diff(words_before))  # in front of its document
    start[first] = (np.arange(len(words)) - before)[has_token]
    end[first] = start[first] + 1
    marks = None
    if sentences and sentences[0].tags is not None:
        marks = np.zeros(len(block.ids), np.int32)
        marks[first] = _classes(sentences, labels)[has_token] + 1
    return TaggedTokens(block.ids, block.offsets[words_before], start, end, marks)


def tokenize_characters(
    documents: Sequence[Document], tokenizer: "LineTokenizer", labels: Sequence[str], scheme: Scheme
) -> TaggedTokens:
    """Tokenizes the text that characters make; each token has the tag of the characters it is of.

    A token belongs to the entity that its first character is in. All documents have tags, or none.
    """
    sentences = [sentence for document in documents for sentence in document.sentences]
    texts = ["".join(sentence.items) for sentence in sentences]
    block = tokenizer.encode_lines_with_spans(texts, unit="characters")
    sentences_before = np.cumsum([0, *(len(document.sentences) for document in documents)])
    items_before = np.cumsum([0, *map(len, texts)])
    before = np.repeat(items_before[sentences_before[:-1]], np.diff(sentences_before))
    shift = np.repeat(items_before[:-1] - before, np.diff(block.offsets))  # [tokens]
    marks = None
    if sentences and sentences[0].tags is not None:
        numbers = _numbers(labels, sentences)
        parts = np.split(block.starts, block.offsets[1:-1])
        tags = [
            numbers[tag] + 1
            for sentence, starts in zip(sentences, parts, strict=True)
            for tag in token_tags(sentence.tags or (), starts, scheme)
        ]
        marks = np.array(tags, np.int32)
    offsets = block.offsets[sentences_before]
    return TaggedTokens(block.ids, offsets, block.starts + shift, block.ends + shift, marks)


def token_tags(tags: Sequence[str], starts: Numbers, scheme: Scheme) -> list[str]:
    """The tags of tokens, by their first characters, from those of all characters."""
    entities = scheme.entities(tags)
    ends = np.searchsorted(starts, [(entity.start, entity.end) for entity in entities]).tolist()
    found = [
        Entity(entity.type, first, end)
        for entity, (first, end) in zip(entities, ends, strict=True)
        if first < end  # an entity inside a token is lost
    ]
    return scheme.write(found, len(starts))


def _classes(sentences: Sequence[Sentence], labels: Sequence[str]) -> NDArray[np.int32]:
    """The number of each word's tag: int32 [words]."""
    numbers = _numbers(labels, sentences)
    return np.array([numbers[tag] for x in sentences for tag in x.tags or ()], np.int32)


def _numbers(labels: Sequence[str], sentences: Sequence[Sentence]) -> dict[str, int]:
    """The number of each label, of several that are one tag the first; no tag may be without."""
    numbers = {label: labels.index(label) for label in labels}
    for sentence in sentences:
        for line, tag in zip(sentence.numbers, sentence.tags or (), strict=False):
            if tag not in numbers:
                raise UserError(
                    f"{sentence.path}: line {line} has the tag {shown(tag)}, which the model does "
                    f"not know; it knows {cut(', '.join(numbers), 200)}."
                )
    return numbers
