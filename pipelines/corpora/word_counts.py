"""Counting the words of a corpus in bounded memory."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from keras_bert_impl.tokenization import reference
from pipelines.corpora.documents import Reading, TextBlock, decode_block, raw_paragraphs_of

_REMEMBERED = 500_000
_LONGEST_REMEMBERED = 20  # in a language without spaces a longer part would be a whole sentence


class CountedBlock(NamedTuple):
    """The words of one block.

    Attributes:
        counts: how often each word occurs that is not too long for the learner.
        packed_bytes: how much of the input this was.
        too_long: how many occurrences of words there are that are too long.
        dropped_bytes: how many bytes were left out because they are no UTF-8.
    """

    counts: dict[str, int]
    packed_bytes: int
    too_long: int = 0
    dropped_bytes: int = 0


def count_block(
    block: TextBlock, reading: Reading, do_lower_case: bool, strip_accents: bool
) -> CountedBlock:
    """Counts the words of a block as WordPiece sees them (in a worker process).

    Raises:
        UserError: the block is not of its source's form or encoding.
    """
    decoded = decode_block(block)
    parts: Counter[str] = Counter()
    for paragraph in raw_paragraphs_of(decoded, reading):
        if paragraph:
            parts.update(paragraph.split(" "))
    words: Counter[str] = Counter()
    too_long = 0
    # Nothing in the rules looks across a space: each part can be split alone, and once.
    remembered = _remembered_words(do_lower_case, strip_accents)
    for part, count in parts.items():
        joined = remembered.get(part)
        if joined is None:
            joined = " ".join(reference.split_words(part, do_lower_case, strip_accents))
            if len(part) <= _LONGEST_REMEMBERED and len(remembered) < _REMEMBERED:
                remembered[part] = joined
        for word in joined.split():
            if len(word) <= reference.MAX_CHARACTERS_PER_WORD:
                words[word] += count
            else:
                too_long += count
    return CountedBlock(words, block.lines.packed_bytes, too_long, decoded.dropped_bytes)


def merge_counts(blocks: Iterable[CountedBlock], most_words: int) -> tuple[Counter[str], int]:
    """Adds up the counts of blocks, never holding many more than `most_words` words.

    Where there are more after a block, only the more frequent half of `most_words` stays (of
    equally frequent ones the first by alphabet). The count of a word that stays may be too low by
    what was dropped of it before. As blocks come in a fixed order, so do the drops.

    Args:
        blocks: the blocks' counts, in order.
        most_words: how many different words are held.

    Returns:
        The counts, and the number of occurrences that were dropped, those of words that are too
        long for the learner among them.

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
        dropped += block.too_long
        if len(total) > most_words:
            dropped += _drop_rare(total, most_words // 2)
    return total, dropped


def _drop_rare(counts: Counter[str], keep: int) -> int:
    """Keeps the `keep` most frequent words; gives how many occurrences of the others went."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return sum(counts.pop(word) for word in ranked[keep:])


_MEMORY: dict[tuple[bool, bool], dict[str, str]] = {}


def _remembered_words(do_lower_case: bool, strip_accents: bool) -> dict[str, str]:
    """The words of parts that were seen before, with spaces between: a tuple takes far more."""
    return _MEMORY.setdefault((do_lower_case, strip_accents), {})
