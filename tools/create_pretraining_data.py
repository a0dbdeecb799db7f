r"""Turns documents into shards of masked sentence pairs for run_pretraining.

The input is text with one sentence a line and an empty line between documents (split_sentences
makes it). The same input, flags and seed give the same bytes for any number of workers, after any
interruption, and from any runner; the same command again continues an interrupted run.

  keras-bert create_pretraining_data --input_file='corpus/*.txt' --vocab_file=vocab.txt \
      --output_file=data/train.tfrecord --max_seq_length=128 --num_workers=8

Options of Beam pass through when --runner names one of its runners.
"""

import sys
from collections.abc import Sequence

from keras_bert_impl.errors import UserError
from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.string(
    "input_file", None, "Text files or quoted globs, separated by commas.", required=True
)
_OUTPUT_FILE = FLAGS.string(
    "output_file",
    None,
    "Common name of the shards, e.g. data/train.tfrecord; -00000-of-00008 and so on is added. Or "
    "the files themselves, separated by commas: they are the shards.",
    required=True,
)
_VOCAB_FILE = FLAGS.string(
    "vocab_file", None, "WordPiece vocabulary, one piece a line.", required=True
)
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case", True, "Lower-case the text and strip accents, for an uncased vocabulary."
)
_STRIP_ACCENTS = FLAGS.switch(
    "strip_accents", None, "Strip accents; follows --do_lower_case where not given."
)
_MAX_SEQ_LENGTH = FLAGS.integer("max_seq_length", 128, "Length of an example in tokens.")
_MAX_PREDICTIONS = FLAGS.integer(
    "max_predictions_per_seq", 20, "Most masked positions of an example."
)
_DUPE_FACTOR = FLAGS.integer(
    "dupe_factor", 10, "How often every document is used, each time with new draws."
)
_SHORT_SEQ_PROB = FLAGS.number(
    "short_seq_prob", 0.1, "Share of documents that are cut to a random, shorter length."
)
_MASKED_LM_PROB = FLAGS.number("masked_lm_prob", 0.15, "Share of the tokens to mask.")
_WHOLE_WORDS = FLAGS.switch("do_whole_word_mask", False, "Mask all pieces of a word together.")
_RANDOM_SEED = FLAGS.integer("random_seed", 12345, "Fixes every draw.")
_NUM_SHARDS = FLAGS.integer(
    "num_shards",
    0,
    "Number of shards; 0 takes one for about 65,000 examples, at most 1,024.",
    lower_bound=0,
)
_NUM_WORKERS = FLAGS.integer(
    "num_workers",
    1,
    "Processes that work at the same time; 0 does all the work in the tool's own process.",
    lower_bound=0,
)
_RUNNER = FLAGS.string(
    "runner",
    "local",
    "local (processes of this machine) or a Beam runner: DirectRunner, FlinkRunner, "
    "PortableRunner, DataflowRunner, ...",
)
_MASKING = FLAGS.choice(
    "masking",
    "static",
    ("static", "dynamic", "none"),
    "static masks once and for all; dynamic stores unmasked pairs that run_pretraining masks anew "
    "in each epoch; none stores unmasked pairs that nobody masks.",
)
_MAX_NGRAM = FLAGS.integer(
    "max_ngram",
    1,
    "Longest run of words masked together, 1 to 3; a run of n words is drawn with a share "
    "proportional to 1/n. Above 1, whole words are masked.",
)
_MASK_PROBABILITIES = FLAGS.words(
    "mask_probabilities",
    ["0.8", "0.1", "0.1"],
    "Shares of masked pieces that become [MASK], stay what they are, or become a random piece.",
)
_NEXT_SENTENCE = FLAGS.switch(
    "do_next_sentence",
    True,
    "Make pairs for next-sentence prediction; without it, full sentences are packed to the length.",
)
_REPLACEMENTS = FLAGS.choice(
    "random_replacements",
    "ordinary",
    ("ordinary", "any"),
    "What a random piece is drawn from: ordinary leaves out [PAD], [unused...] and the other "
    "special pieces; any is the whole vocabulary, as in the original.",
)
_SAME_TRIES = FLAGS.integer(
    "same_document_tries",
    0,
    "0 takes a random next sentence always from another document. The original gives up after 10 "
    "tries and then labels a sentence of the same document random: 10 does so too.",
)
_INVALID_UTF8 = FLAGS.choice(
    "invalid_utf8",
    "refuse",
    ("refuse", "drop"),
    "What to do with ill-formed UTF-8: stop and name the place, or leave the bytes out.",
)
_WORK_FOLDER = FLAGS.string(
    "work_folder",
    None,
    "Where tokens and plans are kept. Named, they stay there, so that another length, seed or "
    "masking of the same text costs no tokenizing; otherwise they stand beside the shards "
    "until the run is complete.",
)


def _run() -> None:
    from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe, parse_shares
    from pipelines.runners.create import create_pretraining_data

    recipe = Recipe(
        max_seq_length=_MAX_SEQ_LENGTH.value,
        max_predictions_per_seq=_MAX_PREDICTIONS.value,
        dupe_factor=_DUPE_FACTOR.value,
        short_seq_prob=_SHORT_SEQ_PROB.value,
        masked_lm_prob=_MASKED_LM_PROB.value,
        do_whole_word_mask=_WHOLE_WORDS.value,
        random_seed=_RANDOM_SEED.value,
        masking=_MASKING.value,
        max_ngram=_MAX_NGRAM.value,
        mask_probabilities=parse_shares(_MASK_PROBABILITIES.value),
        do_next_sentence=_NEXT_SENTENCE.value,
        random_replacements=_REPLACEMENTS.value,
        same_document_tries=_SAME_TRIES.value,
    )
    description = create_pretraining_data(
        PretrainingDataConfig(
            input_file=_INPUT_FILE.value,
            output_file=_OUTPUT_FILE.value,
            vocab_file=_VOCAB_FILE.value,
            do_lower_case=_DO_LOWER_CASE.value,
            strip_accents=_STRIP_ACCENTS.value,
            recipe=recipe,
            num_shards=_NUM_SHARDS.value,
            num_workers=_NUM_WORKERS.value,
            work_folder=_WORK_FOLDER.value,
            invalid_utf8=_INVALID_UTF8.value,
            runner=_runner(),
            beam_arguments=tuple(FLAGS.extra_arguments),
        )
    )
    print(description.summary())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    beam = _takes_beam_options(words)
    return command_line.run(FLAGS, _run, words, keep_unknown=beam, continues=not beam)


def _runner() -> str:
    return _RUNNER.value


def _takes_beam_options(words: Sequence[str]) -> bool:
    """Whether flags that this tool does not know are for a Beam runner."""
    try:
        FLAGS.parse(words, keep_unknown=True)
    except UserError:
        return False  # it will be said when the command line is read in earnest
    return _runner() != "local"


if __name__ == "__main__":
    sys.exit(main())
