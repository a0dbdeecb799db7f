"""Counting the words of a corpus in bounded memory."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from keras_bert_impl.tokenization import reference
from pipelines.corpora.documents import Reading, TextBlock, raw_paragraphs_of

_REMEMBERED = 500_000


class CountedBlock(NamedTuple):
    """The words of one block.

    Attributes:
        counts: how often each word occurs.
        packed_bytes: how much of the input this was.
    """

    counts: dict[str, int]
    packed_bytes: int


def count_block(
    block: TextBlock, reading: Reading, do_lower_case: bool, strip_accents: bool
) -> CountedBlock:
    """Counts the words of a block as WordPiece sees them (in a worker process)."""
    parts: Counter[str] = Counter()
    for paragraph in raw_paragraphs_of(block, reading):
        if paragraph:
            parts.update(paragraph.split(" "))
    words: Counter[str] = Counter()
    remembered = _remembered_words(do_lower_case, strip_accents)
    for part, count in parts.items():
        split = remembered.get(part)
        if split is None:
            # Nothing in the rules looks across a space: each part can be split alone, and once.
            split = tuple(reference.split_words(part, do_lower_case, strip_accents))
            if len(remembered) < _REMEMBERED:
                remembered[part] = split
        for word in split:
            words[word] += count
    return CountedBlock(words, block.lines.packed_bytes)


def merge_counts(blocks: Iterable[CountedBlock], most_words: int) -> tuple[Counter[str], int]:
    """Adds up the counts of blocks, never holding many more than `most_words` words.

    Where there are more after a block, only the more frequent half of `most_words` stays (of
    equally frequent ones the first by alphabet). The count of a word that stays may be too low by
    what was dropped of it before. As blocks come in a fixed order, so do the drops.

    Args:
        blocks: the blocks' counts, in order.
        most_words: how many different words are held.

    Returns:
        The counts, and the number of occurrences that were dropped.

    Example:
        >>> blocks = [CountedBlock({"a": 2, "b": 1, "c": 1}, 0), CountedBlock({"a": 1, "b": 1}, 0)]
        >>> merge_counts(blocks, most_words=2)
        (Counter({'a': 3, 'b': 1}), 2)
    """
    total: Counter[str] = Counter()
    dropped = 0
    for block in blocks:
        for word, count in block.counts.items():
            total[word] += count
        if len(total) > most_words:
            dropped += _drop_rare(total, most_words // 2)
    return total, dropped


def _drop_rare(counts: Counter[str], keep: int) -> int:
    """Keeps the `keep` most frequent words; gives how many occurrences of the others went."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return sum(counts.pop(word) for word in ranked[keep:])


_MEMORY: dict[tuple[bool, bool], dict[str, tuple[str, ...]]] = {}


def _remembered_words(do_lower_case: bool, strip_accents: bool) -> dict[str, tuple[str, ...]]:
    return _MEMORY.setdefault((do_lower_case, strip_accents), {})
