"""Splits documents into sentences: one sentence a line, an empty line between documents.

Every document of the input is one of the output. Plain text has a paragraph a line and an empty
line between documents; of JSON lines one field is the text; folders of WikiExtractor and data sets
of TensorFlow Datasets (tfds:NAME:SPLIT) are read as they are; .gz, .xz and .bz2 are unpacked. A
data set must have been prepared before (`download_and_prepare`): nothing is downloaded here.

Examples:
  keras-bert split_sentences --input_file='wiki/*.jsonl.xz' --output_file=sentences.txt
  keras-bert split_sentences --input_file=extracted/,more.txt --output_dir=text --num_shards=10
  keras-bert split_sentences --input_file=tfds:wiki40b/ko:train --output_file=sentences.txt
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.text_flags import TextFlags

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file",
    [],
    "The documents: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas.",
)
_OUTPUT_FILE = FLAGS.string("output_file", None, "Where to write the sentences, in one file.")
_OUTPUT_DIR = FLAGS.string(
    "output_dir",
    None,
    "The folder for several files instead: sentences-00000-of-00010.txt and so on; documents are "
    "dealt out to them in turn. Files of that form from another --num_shards are removed.",
)
_NUM_SHARDS = FLAGS.integer(
    "num_shards", 1, "How many files to write into --output_dir.", lower_bound=1
)
_LANGUAGE = FLAGS.string(
    "language",
    "auto",
    "The language as an ISO 639 code such as en, ko or de; auto tells Korean, Japanese and Chinese "
    "by their scripts and takes the rest for English.",
)
_NUM_WORKERS = FLAGS.integer(
    "num_workers",
    None,
    "How many processes work; as many as there are processors if it is not given. The output does "
    "not depend on it.",
    lower_bound=1,
)
_TEXT = TextFlags(FLAGS)


def _run() -> None:
    from pipelines.corpora.split_sentences import SplitSentencesConfig, split_sentences

    counts = split_sentences(
        SplitSentencesConfig(
            input_files=_INPUT_FILE.value,
            output_file=_OUTPUT_FILE.value,
            output_dir=_OUTPUT_DIR.value,
            num_shards=_NUM_SHARDS.value,
            input_format=_TEXT.input_format,
            language=_LANGUAGE.value,
            reading=_TEXT.reading(),
            num_workers=_NUM_WORKERS.value,
        )
    )
    print(f"{counts.documents} documents, {counts.sentences} sentences")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
