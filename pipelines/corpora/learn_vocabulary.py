"""Learns a WordPiece vocabulary from documents.

Worker processes count the words of blocks; the counts are added up in the order of the blocks,
which bounds memory and makes the result independent of the number of workers; then
`tokenization.learner` learns from the counts.
"""

import functools
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.files import check_output, is_special
from keras_bert_impl.options import REQUIRED, Options, nested, option
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization import learner, reference
from pipelines.corpora import documents
from pipelines.processes import in_order

_LOGGER = logging.getLogger(__name__)

_REMEMBERED = 500_000
_LONGEST_REMEMBERED = 20  # without spaces between words, a longer part is a whole sentence
_MUCH_LOST = 0.01  # the share of words above which a vocabulary gets advice
_TEXTS_LOOKED_AT = 1000
_MANY_UNCASED = 0.1  # the share of words from which a text is in a script without capitals
_MOST_WORDS = 5_000_000  # different ones held in memory, about 150 bytes each


class CountedBlock(NamedTuple):
    """The words of one block."""

    counts: dict[str, int]
    packed_bytes: int
    too_long: int = 0


def count_block(
    block: documents.TextBlock, reading: documents.Reading, do_lower_case: bool, strip_accents: bool
) -> CountedBlock:
    """Counts the words of a block as WordPiece sees them (in a worker process)."""
    parts = Counter[str]()
    for paragraph in filter(None, documents.raw_paragraphs_of(block, reading)):
        parts.update(paragraph.split(" "))
    words, too_long = Counter[str](), 0
    for part, count in parts.items():
        split = _words if len(part) <= _LONGEST_REMEMBERED else _words.__wrapped__
        for word in split(part, do_lower_case, strip_accents).split():
            if len(word) <= reference.MAX_CHARACTERS_PER_WORD:
                words[word] += count
            else:
                too_long += count
    return CountedBlock(words, block.lines.packed_bytes, too_long)


def merge_counts(blocks: Iterable[CountedBlock], most_words: int) -> tuple[Counter[str], int]:
    """Adds up the counts of blocks, never holding many more than `most_words` words.

    Where there are more after a block, only the more frequent half of `most_words` stays (of
    equally frequent ones the first by alphabet). The count of a word that stays may be too low by
    what was dropped of it before. As blocks come in a fixed order, so do the drops.

    Example:
        >>> blocks = [CountedBlock({"a": 2, "b": 1, "c": 1}, 0), CountedBlock({"a": 1, "b": 1}, 0)]
        >>> merge_counts(blocks, most_words=2)
        (Counter({'a': 3, 'b': 1}), 2)
    """
    total, dropped = Counter[str](), 0
    for block in blocks:
        for word, count in block.counts.items():
            total[word] += count
        dropped += block.too_long
        if len(total) > most_words:
            ranked = sorted(total, key=lambda word: (-total[word], word))
            dropped += sum(total.pop(word) for word in ranked[most_words // 2 :])
    return total, dropped


@functools.lru_cache(_REMEMBERED)
def _words(part: str, do_lower_case: bool, strip_accents: bool) -> str:
    """The words of what stands between two spaces, joined by spaces: tuples would take far more."""
    return " ".join(reference.split_words(part, do_lower_case, strip_accents))


@dataclass(frozen=True, kw_only=True)
class LearnVocabularyConfig(Options):
    """The options of learning a vocabulary."""

    input_file: Sequence[str] = option(
        (), "The text: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas."
    )
    vocab_file: str = option(REQUIRED, "Where to write the vocabulary.")
    do_lower_case: bool = option(
        True, "Whether words are lower-cased; give the same value wherever it is used."
    )
    strip_accents: bool | None = option(
        None, "Whether accents are removed; by default where words are lower-cased."
    )
    options: learner.LearnerOptions = nested(
        learner.LearnerOptions, defaults={"vocab_size": 30_000}
    )
    num_workers: int | None = option(
        None,
        "How many processes count words; by default one for each processor.",
        at_least=1,
        at_most=1024,
    )
    reading: documents.Reading = nested(documents.Reading)

    @property
    def removes_accents(self) -> bool:
        """Whether accents are removed, with the default settled."""
        return self.do_lower_case if self.strip_accents is None else self.strip_accents


def learn_vocabulary(config: LearnVocabularyConfig) -> list[str]:
    """Learns a vocabulary and writes it; gives its figures in words, line by line.

    It is the same one whatever the number of workers.
    """
    sources = documents.find_sources(config.input_file, encoding=config.reading.text_encoding)
    texts, path = documents.files_of(sources), config.vocab_file
    documents.refuse_output_among_input(texts, [path], "vocab_file")
    output = check_output(path)
    if config.do_lower_case and config.strip_accents is None:
        for source in sources[:1]:
            _warn_of_lost_letters(source, config.reading)
    counts, dropped = count_words(config, sources)
    size = config.options.vocab_size
    _LOGGER.info("%d different words are joined into %d tokens.", len(counts), size)
    vocabulary = learner.learn_tokens(counts, config.options).vocabulary
    vocabulary.write(output)
    found, characters = learner.coverage(counts, vocabulary), len(learner.ranked_characters(counts))
    if found.unknown_share > _MUCH_LOST:
        wanted, tokens = _wanted_alphabet(counts)
        larger = f", and raise `vocab_size`: these characters alone take {tokens} tokens"
        larger *= 2 * tokens > size
        _LOGGER.warning(
            "%.1f%% of words are [UNK] (the text has %d characters); give `limit_alphabet=%d`%s.",
            *(100 * found.unknown_share, characters, wanted, larger),
        )
    casing = "lower-cased" if config.do_lower_case else "not lower-cased"
    accents = "accents stripped" if config.removes_accents else "accents kept"
    return [
        f"{len(vocabulary)} tokens from {counts.total() + dropped} words ({len(counts)} different; "
        f"{dropped} dropped as rare or too long)",
        f"{characters} different characters ({casing}, {accents}), "
        f"{min(config.options.limit_alphabet, characters)} of them kept",
        f"{found.unknown_share:.2%} of words are [UNK]; {found.tokens_per_word:.3f} tokens a "
        f"word of the others; {found.whole_share:.1%} of words are one token",
    ]


def _warn_of_lost_letters(source: documents.TextSource, reading: documents.Reading) -> None:
    """Warns where lower-casing takes letters apart that have no case."""
    if is_special(Path(source.name)):
        return  # it can be read once
    texts = (
        text
        for block in documents.read_blocks(source, reading)
        for text in documents.paragraphs_of(block, reading)
    )
    words = " ".join(filter(None, islice(texts, _TEXTS_LOOKED_AT))).split()
    uncased = (word for word in words if word.upper() == word.lower())
    lost = [word for word in uncased if reference.without_accents(word) != word]
    if len(lost) > _MANY_UNCASED * len(words):
        _LOGGER.warning(
            "Lower-casing strips accents, which are parts of letters in this text (%s becomes %s); "
            "give `do_lower_case=False`, here and wherever the vocabulary is used.",
            *(lost[0], " ".join(reference.without_accents(lost[0]))),  # else they are drawn as one
        )


def _wanted_alphabet(counts: Counter[str]) -> tuple[int, int]:
    """How many characters leave few words [UNK], and how many tokens these characters take."""
    ranks = {character: rank for rank, character in enumerate(learner.ranked_characters(counts), 1)}
    words = Counter[int]()  # by the number of characters that each needs
    for word, count in counts.items():
        words[max(map(ranks.__getitem__, word))] += count
    kept = 0
    for wanted in sorted(words):
        kept += words[wanted]
        if kept >= (1 - _MUCH_LOST) * counts.total():
            break
    alphabet = {character for character, rank in ranks.items() if rank <= wanted}
    inside = {character for word in counts for character in word[1:]} & alphabet
    return wanted, len(alphabet) + len(inside)


def count_words(
    config: LearnVocabularyConfig, sources: Sequence[documents.TextSource]
) -> tuple[Counter, int]:
    """Counts the words of sources as WordPiece sees them; see `merge_counts`."""
    work = functools.partial(
        count_block,
        reading=config.reading,
        do_lower_case=config.do_lower_case,
        strip_accents=config.removes_accents,
    )
    progress = Progress("count words", documents.packed_size(sources), "bytes of input")
    blocks = (
        block for source in sources for block in documents.read_blocks(source, config.reading)
    )
    counted = progress.over(in_order(work, blocks, config.num_workers), lambda x: x.packed_bytes)
    return merge_counts(counted, _MOST_WORDS)
