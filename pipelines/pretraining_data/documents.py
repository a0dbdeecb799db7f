"""Reads the sentence files of pre-training: one sentence a line, an empty line between documents.

This is the format that `split_sentences` writes and google's tool reads; the many forms in which
text collections come are read by `corpora.documents`. A file is cut into blocks of whole documents
which can be read in any order and by any process; the cuts depend on the file alone, so every
runner makes the same blocks. The end of a file also ends its last document.
"""

import codecs
import dataclasses
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder
from keras_bert_impl.options import items_of
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora import encodings
from pipelines.corpora.documents import (
    EMPTY_LINE,
    kind_of,
    match_files,
    other_kind,
    refuse_output_among_input,
    with_content,
)
from pipelines.corpora.encodings import UTF_8, TextEncoding, refuse_ill_formed, remedy_of_encoding
from pipelines.corpora.sentences import are_cut
from pipelines.pretraining_data.recipe import PretrainingDataConfig
from pipelines.records.description import shard_names

_LOGGER = logging.getLogger(__name__)

_EXAMPLES_PER_SHARD = 65_536
_MOST_SHARDS = 1024
_MAKE_SENTENCES = (
    "take the text out of it first; split_sentences makes sentences of plain text, of JSON lines "
    "and of WikiExtractor's output"
)
_FEW_STARTS = 0.2  # a lower share of lines with a true next one makes 90 % random pairs or more

BLOCK_BYTES = 4 << 20
MOST_BYTES = 256 << 20  # a block is held in memory; no real document is that long
_READ_BYTES = 1 << 16
_BLOCKS_SAMPLED, _BYTES_SAMPLED = 16, 1 << 14
# Formats that must be unpacked first, because a position in them is not a position in the text.
_PACKED = {b"\x1f\x8b": "gunzip", b"\xfd7zXZ": "unxz", b"BZh": "bunzip2"}


@dataclasses.dataclass(frozen=True)
class FileBlock:
    """Whole documents of one file."""

    path: str
    start: int
    end: int


@dataclasses.dataclass
class SentenceBlock:
    """Tokenized sentences of whole documents."""

    ids: NDArray[np.unsignedinteger]  # unsigned [tokens]
    sentence_lengths: NDArray[np.int64]  # int64 [sentences], tokens of each; never 0
    document_sizes: NDArray[np.int64]  # int64 [documents], sentences of each; never 0


def find_cut(file: IO[bytes], position: int) -> int | None:
    r"""The first position at or after `position` where a document begins, after an empty line.

    Example:
        >>> import io
        >>> find_cut(io.BytesIO(b"One.\nTwo.\n\nThree.\n"), 3)
        11
    """
    read = max(0, position - 1)
    file.seek(read)
    line_end = b""  # the last line end, while only white space has followed it
    while part := file.read(_READ_BYTES):
        window = line_end + part
        if found := EMPTY_LINE.search(window):
            return read - len(line_end) + found.end()
        read += len(part)
        _, line_end, rest = window.rpartition(b"\n")
        line_end = b"" if rest.strip() else line_end
    return None


def cut_into_blocks(path: str, file: IO[bytes], block_bytes: int = BLOCK_BYTES) -> list[FileBlock]:
    r"""Cuts a file into blocks of whole documents of about `block_bytes`.

    Example:
        >>> import io
        >>> blocks = cut_into_blocks("x.txt", io.BytesIO(b"One.\n\nTwo.\n\nThree.\n"), 2)
        >>> [(block.start, block.end) for block in blocks]
        [(0, 6), (6, 12), (12, 19)]
    """
    file.seek(0)
    beginning = file.read(8)
    for magic, tool in _PACKED.items():
        if beginning.startswith(magic):
            raise UserError(
                f"{path}: is packed; unpack it first ({tool}) or, if it is text or JSON that is "
                "not cut into sentences, give it to split_sentences as it is."
            )
    size = file.seek(0, 2)
    starts = [0]
    while (cut := find_cut(file, starts[-1] + block_bytes)) is not None and cut < size:
        starts.append(cut)
    ends = [*starts[1:], size]
    for start, end in zip(starts, ends, strict=True):
        unparted = end - start - block_bytes  # after block_bytes the first empty line ends it
        if unparted > MOST_BYTES:
            raise UserError(
                f"{path}: {unparted >> 20} MiB from byte {start + block_bytes} on without an empty "
                f"line; a document is held in memory and may have {MOST_BYTES >> 20} MiB: put an "
                "empty line between documents (in a text without any, every few hundred sentences)."
            )
    return [FileBlock(path, start, end) for start, end in zip(starts, ends, strict=True)]


def read_lines(
    block: FileBlock, data: bytes, encoding: TextEncoding = UTF_8, *, drop_invalid: bool = False
) -> list[str]:
    r"""The lines of a block, as text."""
    if block.start == 0:
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding.encoding, "ignore" if drop_invalid else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        where = f"line {line}" if block.start == 0 else f"byte {block.start + error.start}"
        raise UserError(
            f"{block.path}: {where} is not {encoding.name}; {remedy_of_encoding(encoding, error)}."
        ) from error
    # Text in UTF-16 without a mark, say, has ends of documents that are not found.
    where = "line 1" if block.start == 0 else f"byte {block.start}"
    refuse_ill_formed(block.path, where, text.count("\0"), len(data), encoding)
    return [line.strip() for line in encoding.composed(text).split("\n")]


def sample_lines(
    blocks: Sequence[FileBlock],
    open_file: Callable[[str], AbstractContextManager[IO[bytes]]],
    encoding: TextEncoding = UTF_8,
) -> list[str]:
    """Lines from the beginnings of some blocks, spread over the text."""
    lines: list[str] = []
    for block in blocks[:: -(-len(blocks) // _BLOCKS_SAMPLED) or 1]:
        with open_file(block.path) as file:
            file.seek(block.start)
            data = file.read(min(block.end - block.start, _BYTES_SAMPLED))
        is_cut = block.end - block.start > _BYTES_SAMPLED
        whole = data[: data.rfind(b"\n") + 1] if is_cut else data
        # Of a single line its last character may be cut.
        lines += read_lines(block, whole or data, encoding, drop_invalid=not whole)
    return lines


def iterate_documents(lines: list[str]) -> Iterator[list[str]]:
    """Groups stripped lines into documents; empty documents are left out."""
    document: list[str] = []
    for line in [*lines, ""]:
        if line:
            document.append(line)
        elif document:
            yield document
            document = []


def encode_block(
    lines: list[str], encode_lines: Callable[[list[str]], Any], dtype: type
) -> SentenceBlock:
    """Tokenizes the lines of a block.

    Sentences without a token (nothing but control characters) and documents without a sentence are
    left out, as the reference does.
    """
    sizes = [len(document) for document in iterate_documents(lines)]
    sentences = [line for line in lines if line]
    tokens = encode_lines(sentences)
    lengths = np.diff(tokens.offsets).astype(np.int64)
    document = np.repeat(np.arange(len(sizes)), sizes)
    filled = np.bincount(document[lengths > 0], minlength=len(sizes))
    return SentenceBlock(
        ids=tokens.ids.astype(dtype),
        sentence_lengths=lengths[lengths > 0],
        document_sizes=filled[filled > 0].astype(np.int64),
    )


def find_input(patterns: str, match: Callable[[str], list[str]] = match_files) -> list[str]:
    """The files that `input_file` names, empty ones left out."""
    found: list[str] = []
    for pattern in filter(None, items_of(patterns)):
        found += (matched := match(pattern))
        if not matched:
            raise UserError(f"`input_file`: '{pattern}' matches no file; check the path.")
    if not found:
        raise UserError("`input_file` names no file; name at least one.")
    return with_content(found)


def prepare(
    config: PretrainingDataConfig,
    inputs: Sequence[str],
    open_file: Callable[[str], AbstractContextManager[IO[bytes]]],
) -> tuple[Vocabulary, list[FileBlock]]:
    """The vocabulary, and the blocks of the text; refuses what no runner could make shards of."""
    vocabulary = Vocabulary.load(config.vocab_file)
    settings = config.text_settings(vocabulary)
    if contradiction := settings.contradiction():
        warnings.warn(contradiction, stacklevel=2)
    blocks, warned = list[FileBlock](), set[str]()
    for path in inputs:
        with open_file(path) as file:
            look_at_input(path, file, warned)
            blocks += cut_into_blocks(path, file)
    known = shard_names(config.output_names, config.shards_asked)
    refuse_output_among_input(inputs, known, "output_file")
    sample = sample_lines(blocks, open_file, config.text_encoding)
    config.unknown.check(sample, settings, config.input_file)
    if "://" not in config.set_name:
        output = Path(config.set_name)
        make_folder(output.parent)
        if output.is_dir():
            raise UserError(
                f"`output_file`: {output} is a folder; give the shards a name in it, such as "
                f"{output / 'train.tfrecord'}."
            )
    return vocabulary, blocks


def look_at_input(path: str, file: IO[bytes], warned: set[str]) -> None:
    """Looks at what is read as sentences: refuses JSON, warns of what are probably none."""
    file.seek(0)
    start = file.read(encodings.SAMPLE_BYTES)
    encodings.refuse_no_text(path, start)
    if are_cut(start.decode("utf-8", "ignore").split("\n")):
        _LOGGER.warning(
            "%s: lines seem to be cut at one width, so that they are parts of sentences; make "
            "sentences of the text with split_sentences, which joins them.",
            path,
        )
    if kind_of(start.decode("utf-8", "ignore")) == "JSON":
        raise UserError(
            f"{path}: holds JSON, but sentences are needed, one a line; make them with "
            "split_sentences, which reads JSON lines, and give its output."
        )
    other_kind(path, start, _MAKE_SENTENCES, warned)


def was_changed(path: str) -> UserError:
    """The one sentence for a file that another process was writing."""
    return UserError(f"{path}: was changed while it was read; start again when it is whole.")


def no_sentence(inputs: str) -> UserError:
    """The one sentence for a text without any."""
    return UserError(
        f"{inputs}: has no sentence with a token; write one sentence a line and an empty line "
        "between documents."
    )


def check_partners(
    config: PretrainingDataConfig, documents: int, sentences: int, starts: int
) -> None:
    """Refuses a corpus without sentences, or where no true or no random next one can be found."""
    recipe = config.recipe
    if documents == 0:
        raise no_sentence(config.input_file)
    if documents == 1 and recipe.do_next_sentence and not recipe.same_document_tries:
        raise UserError(
            f"{config.input_file}: holds one document, so no random next sentence can be taken "
            "from another; separate documents by empty lines, pass `do_next_sentence=False`, or "
            "`same_document_tries=10` to label sentences of the same document random."
        )
    if recipe.do_next_sentence and starts < _FEW_STARTS * sentences:
        message = (
            f"{config.input_file}: {starts:,} of {sentences:,} lines can be followed by their true "
            "next one (the others are the last of their document, or fill an example of "
            f"`max_seq_length={recipe.max_seq_length}` alone), so that {'nearly ' * (starts > 0)}"
            "all next sentences are random; make sentences of the text with split_sentences, or "
            "pass `do_next_sentence=False`, and nonext_sentence to run_pretraining."
        )
        if not starts:
            raise UserError(message)
        _LOGGER.warning("%s", message)


def choose_shards(examples: int, asked: int) -> int:
    """The number of shards: as asked, or one for about 65 thousand examples, at most 1024.

    Example:
        >>> choose_shards(200_000, 0), choose_shards(10, 0), choose_shards(10, 3)
        (4, 1, 3)
    """
    return asked or min(_MOST_SHARDS, -(-examples // _EXAMPLES_PER_SHARD)) or 1
