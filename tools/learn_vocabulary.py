r"""Learns a WordPiece vocabulary of exactly the asked size from text in any language.

It reads what split_sentences reads and what it writes. The vocabulary does not depend on the number
of workers. A report says how the vocabulary cuts the words it was learned from.

Examples:
  keras-bert learn_vocabulary --input_file=sentences.txt --vocab_file=vocab.txt --vocab_size=30000
  keras-bert learn_vocabulary --input_file='wiki/*.jsonl.xz' --vocab_file=vocab.txt \
      --vocab_size=30000 --nodo_lower_case --show_merges=20
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.text_flags import TextFlags

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file",
    [],
    "The text: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas.",
)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "Where to write the vocabulary.", required=True)
_VOCAB_SIZE = FLAGS.integer(
    "vocab_size", 30_000, "How many pieces the vocabulary gets, all told.", lower_bound=10
)
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case", True, "Whether words are lower-cased; say the same wherever it is used."
)
_STRIP_ACCENTS = FLAGS.switch(
    "strip_accents", None, "Whether accents go. Without it they go where words are lower-cased."
)
_MIN_FREQUENCY = FLAGS.integer(
    "min_frequency", 2, "How often two pieces must stand together to be joined.", lower_bound=1
)
_LIMIT_ALPHABET = FLAGS.integer(
    "limit_alphabet",
    1000,
    "How many different characters are kept, the most frequent ones. Chinese and Korean (without "
    "stripping accents) need more, about 6000.",
    lower_bound=1,
)
_NUM_UNUSED = FLAGS.integer(
    "num_unused", 0, "How many entries [unused0], [unused1], ... to reserve.", lower_bound=0
)
_SPECIAL_TOKENS = FLAGS.words(
    "special_tokens",
    [],
    "Further tokens that get an id, behind [PAD], [UNK], [CLS], [SEP], [MASK].",
)
_SHOW_MERGES = FLAGS.integer(
    "show_merges", 0, "How many of the first merges to print, with their counts.", lower_bound=0
)
_MAX_WORDS = FLAGS.integer(
    "max_words",
    5_000_000,
    "How many different words are held in memory (about 150 bytes each); where there are more, the "
    "rarest so far are dropped.",
    lower_bound=1000,
)
_NUM_WORKERS = FLAGS.integer(
    "num_workers",
    None,
    "How many processes count words; as many as there are processors if it is not given.",
    lower_bound=1,
)
_TEXT = TextFlags(FLAGS)


def _run() -> None:
    from keras_bert_impl.tokenization.learner import LearnerOptions
    from pipelines.corpora.learn_vocabulary import LearnVocabularyConfig, learn_vocabulary

    learned = learn_vocabulary(
        LearnVocabularyConfig(
            input_files=_INPUT_FILE.value,
            vocab_file=_VOCAB_FILE.value,
            options=LearnerOptions(
                vocab_size=_VOCAB_SIZE.value,
                min_frequency=_MIN_FREQUENCY.value,
                limit_alphabet=_LIMIT_ALPHABET.value,
                num_unused=_NUM_UNUSED.value,
                special_tokens=tuple(_SPECIAL_TOKENS.value),
            ),
            do_lower_case=_DO_LOWER_CASE.value,
            strip_accents=_STRIP_ACCENTS.value,
            input_format=_TEXT.input_format,
            reading=_TEXT.reading(),
            most_words=_MAX_WORDS.value,
            num_workers=_NUM_WORKERS.value,
            show_merges=_SHOW_MERGES.value,
        )
    )
    for number, merge in enumerate(learned.merges, 1):
        joined = merge.left + merge.right.removeprefix("##")
        print(f"{number:4}  {merge.left} + {merge.right} -> {joined}  ({merge.count} times)")
    report = learned.coverage
    print(
        f"{len(learned.vocabulary)} pieces from {learned.words} words "
        f"({learned.different_words} different; {learned.dropped} dropped as rare or too long)\n"
        f"{report.pieces_per_word:.3f} pieces a word, {report.whole_share:.1%} of words are one "
        f"piece, {report.unknown_share:.3%} are [UNK]"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
