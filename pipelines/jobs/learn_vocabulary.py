"""The job behind `learn_vocabulary`: documents in, a WordPiece vocabulary out."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.files import make_folder
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.learner import (
    Coverage,
    LearnerOptions,
    Merge,
    coverage,
    first_merges,
    learn_pieces,
)
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import Reading, read_blocks
from pipelines.corpora.encoding import say_what_was_dropped
from pipelines.corpora.parallel import in_order
from pipelines.corpora.sources import Source, find_sources, refuse_output_among_input
from pipelines.corpora.word_counts import CountedBlock, count_block, merge_counts


@dataclass(frozen=True)
class LearnVocabularyConfig:
    """What to learn from and what to learn.

    Attributes:
        input_files: paths, folders, glob patterns, or "tfds:NAME:SPLIT".
        vocab_file: where to write the vocabulary.
        options: its size and what it has.
        do_lower_case: whether words are lower-cased.
        strip_accents: whether accents go; None: where words are lower-cased.
        input_format: one of `sources.FORMS`.
        reading: how documents are found.
        most_words: how many different words are held in memory.
        num_workers: how many processes count; None: one for each processor.
        show_merges: how many of the first merges are wanted.
    """

    input_files: list[str]
    vocab_file: str
    options: LearnerOptions
    do_lower_case: bool = True
    strip_accents: bool | None = None
    input_format: str = "auto"
    reading: Reading = field(default_factory=Reading)
    most_words: int = 5_000_000
    num_workers: int | None = None
    show_merges: int = 0


class LearnedVocabulary(NamedTuple):
    """What was learned, and from what.

    Attributes:
        vocabulary: the vocabulary.
        words: how many words the text has.
        different_words: how many different ones were held.
        dropped: how many occurrences were dropped: of words that are too long to have pieces, and
            of rare words to bound memory.
        coverage: how the vocabulary cuts these words.
        merges: the first merges.
    """

    vocabulary: Vocabulary
    words: int
    different_words: int
    dropped: int
    coverage: Coverage
    merges: list[Merge]


def learn_vocabulary(config: LearnVocabularyConfig) -> LearnedVocabulary:
    """Learns a vocabulary and writes it; the same one whatever the number of workers.

    Raises:
        UserError: an input cannot be read, the size cannot be reached, or the file not written.
    """
    sources = find_sources(config.input_files, config.input_format)
    files = (source.name for source in sources if source.form != "tfds")
    refuse_output_among_input(files, [config.vocab_file], "--vocab_file")
    make_folder(Path(config.vocab_file).parent)
    counts, dropped = merge_counts(_count(config, sources), config.most_words)
    progress = Progress("learn pieces", None, "pieces")
    learned = learn_pieces(counts, config.options)
    progress.advance(len(learned.vocabulary))
    progress.close()
    learned.vocabulary.write(config.vocab_file)
    return LearnedVocabulary(
        vocabulary=learned.vocabulary,
        words=counts.total() + dropped,
        different_words=len(counts),
        dropped=dropped,
        coverage=coverage(counts, learned.vocabulary),
        merges=first_merges(counts, learned, config.show_merges),
    )


def _count(config: LearnVocabularyConfig, sources: list[Source]) -> Iterator[CountedBlock]:
    strip = config.do_lower_case if config.strip_accents is None else config.strip_accents
    work = functools.partial(
        count_block,
        reading=config.reading,
        do_lower_case=config.do_lower_case,
        strip_accents=strip,
    )
    packed = None
    if all(source.form != "tfds" for source in sources):
        packed = sum(Path(source.name).stat().st_size for source in sources)
    progress = Progress("count words", packed, "bytes of input")
    blocks = (block for source in sources for block in read_blocks(source, config.reading))
    dropped_bytes = 0
    for counted in in_order(work, blocks, config.num_workers):
        yield counted
        dropped_bytes += counted.dropped_bytes
        progress.advance(counted.packed_bytes)
    progress.close()
    say_what_was_dropped(dropped_bytes)
