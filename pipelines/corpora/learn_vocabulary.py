"""Learns a WordPiece vocabulary from documents.

Worker processes count the words of blocks; the counts are added up in the order of the blocks,
which bounds memory and makes the result independent of the number of workers; then
`tokenization.learner` learns from the counts.
"""

import functools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keras_bert_impl.files import check_output
from keras_bert_impl.options import REQUIRED, check_options, nested, option
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.learner import (
    Alphabet,
    Coverage,
    LearnerOptions,
    Merge,
    coverage,
    first_merges,
    learn_tokens,
    single_share,
)
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import (
    Reading,
    TextBlock,
    decode_block,
    raw_paragraphs_of,
    read_blocks,
)
from pipelines.corpora.sources import (
    Source,
    find_sources,
    packed_size,
    refuse_output_among_input,
)
from pipelines.corpora.unpacking import say_what_was_dropped
from pipelines.processes import in_order

_LOGGER = logging.getLogger(__name__)

_REMEMBERED = 500_000
# Characters of so many blocks tell the script; where nothing parts words, one may be a sentence.
_SAMPLE_OF_BLOCK, _BLOCKS_IN_SAMPLE, _SHOWN = 4000, 50, 20
_LONGEST_REMEMBERED = 20  # without spaces between words, a longer part is a whole sentence
# Shares above which a vocabulary gets advice, and the share that advice aims at.
_MUCH_LOST, _LITTLE_LOST = 0.01, 0.005
_MANY_SINGLES = 1 / 3


class CountedBlock(NamedTuple):
    """The words of one block.

    Attributes:
        counts: how often each word occurs that is not too long for the learner.
        packed_bytes: how much of the input this was.
        too_long: how many occurrences of words that are too long were left out.
        dropped_bytes: how many bytes were left out because they are not UTF-8.
        sample: the beginning of the block, as it is written.
    """

    counts: dict[str, int]
    packed_bytes: int
    too_long: int = 0
    dropped_bytes: int = 0
    sample: str = ""


def count_block(
    block: TextBlock, reading: Reading, do_lower_case: bool, strip_accents: bool
) -> CountedBlock:
    """Counts the words of a block as WordPiece sees them (in a worker process)."""
    decoded = decode_block(block, reading)
    parts: Counter[str] = Counter()
    sample = ""
    for paragraph in raw_paragraphs_of(decoded, reading):
        if paragraph:
            parts.update(paragraph.split(" "))
            if len(sample) < _SAMPLE_OF_BLOCK:
                sample += f"{paragraph[:_SAMPLE_OF_BLOCK]} "
    words: Counter[str] = Counter()
    too_long = 0
    # No rule looks across a space, so each part between spaces is split only once.
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
    packed = block.lines.packed_bytes
    return CountedBlock(words, packed, too_long, decoded.dropped_bytes, sample)


def merge_counts(blocks: Iterable[CountedBlock], most_words: int) -> tuple[Counter[str], int]:
    """Adds up the counts of blocks, never holding many more than `most_words` words.

    Where there are more after a block, only the more frequent half of `most_words` stays (of
    equally frequent ones the first by alphabet). The count of a word that stays may be too low by
    what was dropped of it before. As blocks come in a fixed order, so do the drops.

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
    """The words of parts that were seen before, joined by spaces: tuples would take far more."""
    return _MEMORY.setdefault((do_lower_case, strip_accents), {})


@dataclass(frozen=True, kw_only=True)
class LearnVocabularyConfig:
    """The options of learning a vocabulary."""

    input_file: Sequence[str] = option(
        (),
        "The text: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas.",
    )
    vocab_file: str = option(REQUIRED, "Where to write the vocabulary.")
    do_lower_case: bool = option(
        True, "Whether words are lower-cased; give the same value wherever it is used."
    )
    strip_accents: bool | None = option(
        None, "Whether accents are removed; by default where words are lower-cased."
    )
    options: LearnerOptions = nested(LearnerOptions, defaults={"vocab_size": 30_000})
    show_merges: int = option(
        0, "How many of the first merges to print, with their counts.", at_least=0
    )
    max_words: int = option(
        5_000_000,
        "How many different words are held in memory (about 150 bytes each); where there are "
        "more, the rarest so far are dropped.",
        at_least=1000,
    )
    num_workers: int | None = option(
        None,
        "How many processes count words; by default one for each processor.",
        at_least=1,
        at_most=1024,
    )
    reading: Reading = nested(Reading)

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def removes_accents(self) -> bool:
        """Whether accents are removed, with the default settled."""
        return self.do_lower_case if self.strip_accents is None else self.strip_accents


class LearnedVocabulary(NamedTuple):
    """The learned vocabulary and its sources.

    Attributes:
        vocabulary: the vocabulary.
        words: how many words the text has.
        different_words: how many different ones were held.
        dropped: how many occurrences were dropped: of words that are too long for WordPiece, and
            of rare words to bound memory.
        coverage: how the vocabulary splits these words.
        merges: the first merges.
        alphabet: the characters of these words.
        sample: some of the text, as it is written.
        config: what was asked for.
    """

    vocabulary: Vocabulary
    words: int
    different_words: int
    dropped: int
    coverage: Coverage
    merges: list[Merge]
    alphabet: Alphabet
    sample: str
    config: LearnVocabularyConfig

    def report(self) -> list[str]:
        """The figures in words, line by line."""
        found, limit = self.coverage, self.config.options.limit_alphabet
        casing = ("lower-cased", "not lower-cased")[not self.config.do_lower_case]
        accents = "accents stripped" if self.config.removes_accents else "accents kept"
        return [
            f"{len(self.vocabulary)} tokens from {self.words} words ({self.different_words} "
            f"different; {self.dropped} dropped as rare or too long)",
            f"{self.alphabet.characters} different characters ({casing}, {accents}), "
            f"{min(limit, self.alphabet.characters)} of them kept; "
            f"{self.alphabet.lost_share(limit):.2%} of words have another one and are [UNK]",
            f"{single_share(self.vocabulary):.1%} of the tokens are single characters",
            f"{found.unknown_share:.2%} of words are [UNK]; {found.tokens_per_word:.3f} tokens a "
            f"word of the others; {found.whole_share:.1%} of words are one token",
        ]

    def advice(self) -> list[str]:
        """A sentence for each figure that is bad: what made it so, and what to do."""
        return [*_advice_on_letters(self), *_advice_on_the_limit(self)]


def _advice_on_letters(learned: LearnedVocabulary) -> Iterator[str]:
    """Whether letters come apart: by the casing, or because they are apart in the text."""
    casing = learned.config.do_lower_case, learned.config.removes_accents
    words = Counter(word[:_SHOWN] for word in reference.split_words(learned.sample, False))
    # What composing makes shorter is decomposed.
    test = reference.loses_letters if casing[1] else lambda w: len(reference.as_name(w)) < len(w)
    found = Counter({word: count for word, count in words.items() if test(word)})
    share = found.total() / max(words.total(), 1)
    if share <= _MUCH_LOST:
        return
    if casing[1]:
        word = max(found, key=lambda word: (found[word], -len(word)))
        left = " ".join("".join(reference.split_words(word, *casing)))
        yield (
            f"{share:.0%} of words lose letters, because accents are stripped (by default where "
            f"words are lower-cased), and a script without capitals makes letters of them: {word} "
            f"becomes {left}; give `do_lower_case=False`, or `strip_accents=False`, here and "
            "wherever the vocabulary is used."
        )
    else:
        yield (
            f"{share:.0%} of words are in pieces, because the text is decomposed (Unicode's NFD): "
            "in composed text, as most is, the vocabulary will not know these letters; compose it "
            "first (unicodedata.normalize('NFC', text) in Python, or uconv -x any-nfc)."
        )


def _advice_on_the_limit(learned: LearnedVocabulary) -> Iterator[str]:
    alphabet, options = learned.alphabet, learned.config.options
    lost, singles = alphabet.lost_share(options.limit_alphabet), single_share(learned.vocabulary)
    if lost > _MUCH_LOST:
        limit = alphabet.limit_for(_LITTLE_LOST)
        room = 2 * limit / _MANY_SINGLES  # a character is a token at a word's beginning and in it
        larger = f" and a `vocab_size` of {room:.0f} or more" if room > options.vocab_size else ""
        yield (
            f"`limit_alphabet={options.limit_alphabet}` makes {lost:.1%} of words [UNK]; give "
            f"`limit_alphabet={limit}`{larger}, which leaves {_LITTLE_LOST:.1%}."
        )
    elif singles > _MANY_SINGLES:
        limit = alphabet.limit_for(_MUCH_LOST)
        smaller = (
            f", or `limit_alphabet={limit}`, which leaves {_MUCH_LOST:.0%} of words [UNK]"
            if limit < min(options.limit_alphabet, alphabet.characters)
            else ""
        )
        yield (
            f"{singles:.0%} of the tokens are single characters, which leaves little room for "
            f"words; give a larger `vocab_size`{smaller}."
        )


def learn_vocabulary(config: LearnVocabularyConfig) -> LearnedVocabulary:
    """Learns a vocabulary and writes it; the same one whatever the number of workers."""
    sources = find_sources(
        config.input_file, config.reading.input_format, config.reading.text_encoding
    )
    files = (source.name for source in sources if source.form != "tfds")
    refuse_output_among_input(files, [config.vocab_file], "vocab_file")
    output = check_output(config.vocab_file)
    sample: list[str] = []
    counts, dropped = merge_counts(_count(config, sources, sample), config.max_words)
    progress = Progress("learn tokens", None, "tokens")
    learned = learn_tokens(counts, config.options)
    progress.advance(len(learned.vocabulary))
    progress.close()
    learned.vocabulary.write(output)
    result = LearnedVocabulary(
        vocabulary=learned.vocabulary,
        words=counts.total() + dropped,
        different_words=len(counts),
        dropped=dropped,
        coverage=coverage(counts, learned.vocabulary),
        merges=first_merges(counts, learned, config.show_merges),
        alphabet=Alphabet.of(counts),
        sample=" ".join(sample),
        config=config,
    )
    for sentence in result.advice():
        _LOGGER.warning("%s", sentence)
    return result


def count_words(config: LearnVocabularyConfig, sources: Sequence[Source]) -> tuple[Counter, int]:
    """Counts the words of sources as WordPiece sees them; see `merge_counts`."""
    return merge_counts(_count(config, sources, []), config.max_words)


def _count(
    config: LearnVocabularyConfig, sources: Sequence[Source], sample: list[str]
) -> Iterator[CountedBlock]:
    work = functools.partial(
        count_block,
        reading=config.reading,
        do_lower_case=config.do_lower_case,
        strip_accents=config.removes_accents,
    )
    progress = Progress("count words", packed_size(sources), "bytes of input")
    blocks = (block for source in sources for block in read_blocks(source, config.reading))
    dropped_bytes = 0
    for counted in in_order(work, blocks, config.num_workers):
        yield counted
        sample += [counted.sample] if len(sample) < _BLOCKS_IN_SAMPLE else []
        dropped_bytes += counted.dropped_bytes
        progress.advance(counted.packed_bytes)
    progress.close()
    say_what_was_dropped(dropped_bytes)
