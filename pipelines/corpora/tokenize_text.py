"""Tokenizes lines into JSON lines."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Literal, get_args

from keras_bert_impl.files import check_output, open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.options import REQUIRED, Options, nested, option
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import SpecialTokens, Tokenizer
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora import documents
from pipelines.corpora.encodings import UTF_8, TextEncoding, beginning_of_text, decode, lines_of

Offsets = Literal["none", "bytes", "characters"]
_LINES_AT_ONCE = 1024
_REMEDY = "take the text out of it first, or name JSON's field with `text_field`"


@dataclass(frozen=True, kw_only=True)
class TokenizeTextConfig(Options):
    """The options of tokenizing."""

    input_file: Sequence[str] = option(
        (),
        "The lines: paths or glob patterns, separated by commas, plain or packed (.gz, .xz, "
        ".bz2). Without it lines are read from standard input.",
    )
    text_field: str | None = option(
        None, "If the input is JSON lines: the field whose text is tokenized, line by line."
    )
    output_file: str | None = option(None, "Where to write; standard output if it is not given.")
    vocab_file: str = option(REQUIRED, "The vocabulary: one token a line.")
    do_lower_case: bool = option(
        True, "Whether text is lower-cased; true for uncased vocabularies."
    )
    strip_accents: bool | None = option(
        None, "Whether accents are removed; by default where text is lower-cased."
    )
    special_tokens: SpecialTokens = option(
        "split",
        "Whether a literal [MASK], [CLS], ... in the text is split like any text (as google's "
        "code does) or kept as the one token (as Hugging Face's does).",
        choices=get_args(SpecialTokens),
    )
    offsets: Offsets = option(
        "none",
        "Whether each token's position in its line is written as `spans` (start, end), and in "
        "what unit.",
        choices=get_args(Offsets),
    )

    text_encoding: TextEncoding = nested(TextEncoding)
    unknown: UnknownWords = nested(UnknownWords)

    def text_settings(self) -> TextSettings:
        """Reads the vocabulary."""
        vocabulary = Vocabulary.load(self.vocab_file)
        return TextSettings(vocabulary, self.do_lower_case, self.strip_accents)


def run_tokenize_text(config: TokenizeTextConfig, standard_output: IO[str]) -> None:
    """Writes the tokens of all lines where the configuration says."""
    path = config.output_file
    names = config.input_file or ["/dev/stdin"]
    found = read_all_lines(names, config.text_field, path, config.text_encoding)
    output = open_whole(check_output(path)) if path else contextlib.nullcontext(standard_output)
    with output as file:
        tokenize_text(config, found, file)


def read_all_lines(
    patterns: Sequence[str],
    text_field: str | None = None,
    output_file: str | None = None,
    encoding: TextEncoding = UTF_8,
) -> Iterator[str | bytes]:
    """The lines of files, without their ends; .gz, .xz and .bz2 files are unpacked."""
    paths = documents.with_content(documents.expand_patterns(patterns))
    documents.refuse_output_among_input(paths, [output_file] if output_file else [], "output_file")
    return _lines_of_files(paths, text_field, encoding)


def _lines_of_files(
    paths: list[str], text_field: str | None, encoding: TextEncoding
) -> Iterator[str | bytes]:
    reading = documents.Reading(text_field or "", text_encoding=encoding)
    warned: set[str] = set()
    for path in [] if text_field else paths:
        documents.other_kind(path, beginning_of_text(path, encoding), _REMEDY, warned)
    form: documents.Form = "json_lines" if text_field else "text"
    for path in paths:
        for block in documents.read_blocks(documents.TextSource(path, form), reading):
            if text_field:
                yield from filter(None, documents.raw_paragraphs_of(block, reading))
            else:
                decode(path, block.lines.first_line, block.lines.text, encoding)
                yield from lines_of(block.lines)  # as bytes: positions in them may be asked for


def tokenize_text(config: TokenizeTextConfig, lines: Iterable[str | bytes], output: IO[str]) -> int:
    """Writes a JSON object for each line: `tokens`, `ids` and, if asked for, `spans`."""
    settings, source = config.text_settings(), iter(lines)
    first = list(itertools.islice(source, _LINES_AT_ONCE))
    name = ", ".join(config.input_file) or "standard input"
    config.unknown.check(first, settings, name)  # before TensorFlow is loaded
    tokenizer, count, batch = Tokenizer(settings, config.special_tokens), 0, first
    while batch:
        count += _write(tokenizer, config.offsets, batch, output)
        batch = list(itertools.islice(source, _LINES_AT_ONCE))
    return count


def _write(tokenizer: Tokenizer, unit: Offsets, lines: list[str | bytes], output: IO[str]) -> int:
    spans: list[tuple[int, int]] = []
    if unit == "none":
        ids, offsets = tokenizer.encode_lines(lines)
    else:
        ids, offsets, starts, ends = tokenizer.encode_lines_with_spans(lines, unit)
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    numbers, tokens = ids.tolist(), tokenizer.vocabulary.tokens
    for first, last in itertools.pairwise(offsets.tolist()):
        own = numbers[first:last]
        record = {"tokens": [tokens[number] for number in own], "ids": own}
        more = {} if unit == "none" else {"spans": spans[first:last]}
        output.write(json_text(record | more, ensure_ascii=False) + "\n")
    return len(lines)
