"""Cuts lines into BERT's word pieces: lines in, JSON lines with `tokens` and `ids` out.

Examples:
  keras-bert tokenize_text --vocab_file=vocab.txt --do_lower_case --input_file=text.txt
  echo 'Some text.' | keras-bert tokenize_text --vocab_file=vocab.txt --offsets=characters
  keras-bert tokenize_text --vocab_file=vocab.txt --certify --input_file='wiki/*.txt.xz'
"""

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_bert_impl.errors import UserError
from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file",
    [],
    "The lines: paths or glob patterns, separated by commas, plain or packed (.gz, .xz, .bz2). "
    "Without it lines are read from standard input.",
)
_TEXT_FIELD = FLAGS.string(
    "text_field",
    None,
    "If the input is JSON lines: the field whose text is cut, line by line.",
)
_OUTPUT_FILE = FLAGS.string(
    "output_file", None, "Where to write; standard output if it is not given."
)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "The vocabulary: one piece a line.", required=True)
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case", True, "Whether text is lower-cased; true for uncased vocabularies."
)
_STRIP_ACCENTS = FLAGS.switch(
    "strip_accents", None, "Whether accents go. Without it they go where text is lower-cased."
)
_SPECIAL_TOKENS = FLAGS.choice(
    "special_tokens",
    "split",
    ["split", "keep"],
    "Whether a literal [MASK], [CLS], ... in the text is split like any text (as google's code "
    "does) or kept as the one token (as Hugging Face's does).",
)
_OFFSETS = FLAGS.choice(
    "offsets",
    "none",
    ["none", "bytes", "characters"],
    "Whether each token's place in its line is written as `spans` (start, end), and in what unit.",
)
_CERTIFY = FLAGS.switch(
    "certify",
    False,
    "Instead of tokens, write a certificate: all code points of Unicode, and the lines of "
    "--input_file where it is given, are compared with the plain reference. The exit code is 1 "
    "where anything differs.",
)


@contextlib.contextmanager
def _output(path: str | None) -> Iterator:
    from keras_bert_impl.files import make_folder, open_whole

    if path is None:
        yield sys.stdout
    else:
        make_folder(Path(path).parent)
        with open_whole(path) as file:
            yield file


def _run() -> None:
    from pipelines.corpora.tokenize_text import (
        TokenizeTextConfig,
        certify_tokenizer,
        read_all_lines,
        tokenize_text,
    )

    config = TokenizeTextConfig(
        vocab_file=_VOCAB_FILE.value,
        do_lower_case=_DO_LOWER_CASE.value,
        strip_accents=_STRIP_ACCENTS.value,
        special_tokens=_SPECIAL_TOKENS.value,
        offsets=_OFFSETS.value,
    )
    patterns = _INPUT_FILE.value
    text_field, output_file = _TEXT_FIELD.value, _OUTPUT_FILE.value
    lines: Iterable[str | bytes] | None = None
    if patterns:
        lines = read_all_lines(patterns, text_field, output_file)
    with _output(output_file) as output:
        if not _CERTIFY.value:
            standard_input = (line.rstrip(b"\r\n") for line in sys.stdin.buffer)
            tokenize_text(config, standard_input if lines is None else lines, output)
            return
        report = certify_tokenizer(config, lines)
        output.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    if not report["exact"]:
        raise UserError("Some tokens differ from the reference's; the certificate has the first.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
