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
from dataclasses import replace

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError
from pipelines.pretraining_data.recipe import PretrainingDataConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, PretrainingDataConfig)


def _run(config: PretrainingDataConfig) -> None:
    if config.runner == "local":
        from pipelines.runners.local import run_local

        description = run_local(config)
    else:
        need_extra("beam", ["apache_beam"], f"`runner={config.runner}`")
        from pipelines.runners.beam import run_beam

        description = run_beam(replace(config, beam_arguments=tuple(FLAGS.extra_arguments)))
    print(description.summary())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    beam = _takes_beam_options(words)
    return FLAGS.main_of(_run, keep_unknown=beam, continues=not beam)(words)


def _takes_beam_options(words: Sequence[str]) -> bool:
    """Whether flags that this tool does not know are for a Beam runner."""
    try:
        FLAGS.parse(words, keep_unknown=True)
    except UserError:
        return False  # said when the command line is read in earnest
    return FLAGS.value_of("runner") != "local"


if __name__ == "__main__":
    sys.exit(main())
