"""The job behind `split_sentences`: documents in, one sentence a line out."""

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.progress import Progress
from pipelines.corpora.documents import Reading, TextBlock, paragraphs_of, read_blocks
from pipelines.corpora.parallel import in_order
from pipelines.corpora.sentences import split_paragraph
from pipelines.corpora.sources import Source, find_sources

_LANGUAGES_BY_SCRIPT = (
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)


@dataclass(frozen=True)
class SplitSentencesConfig:
    """What to split and where to write it.

    Attributes:
        input_files: paths, folders, glob patterns, or "tfds:NAME:SPLIT".
        output_file: the one file to write, or None.
        output_dir: the folder for `num_shards` files, or None.
        num_shards: into how many files documents are dealt out.
        input_format: one of `sources.FORMS`.
        language: ISO 639 code, or "auto": by each paragraph's script.
        reading: how documents are found.
        num_workers: how many processes split; None: one for each processor.
    """

    input_files: list[str]
    output_file: str | None = None
    output_dir: str | None = None
    num_shards: int = 1
    input_format: str = "auto"
    language: str = "auto"
    reading: Reading = field(default_factory=Reading)
    num_workers: int | None = None


class SentenceCounts(NamedTuple):
    """What was written."""

    documents: int
    sentences: int


class SplitBlock(NamedTuple):
    """A block's sentences.

    Attributes:
        ends_document_first: whether the document that was open before the block ends at once.
        text: the sentences, one a line, an empty line behind each document that ends.
        documents: how many documents end within `text`.
        sentences: the number of sentences.
        is_open: whether the last document of `text` goes on.
        packed_bytes: how much of the input this was.
    """

    ends_document_first: bool
    text: bytes
    documents: int
    sentences: int
    is_open: bool
    packed_bytes: int


def split_sentences(config: SplitSentencesConfig) -> SentenceCounts:
    """Writes the sentences; the same bytes whatever the number of workers.

    Raises:
        UserError: an input cannot be read, or the output cannot be written.
    """
    sources = find_sources(config.input_files, config.input_format)
    blocks = (block for source in sources for block in read_blocks(source, config.reading))
    work = functools.partial(split_block, reading=config.reading, language=config.language)
    progress = Progress("split sentences", _packed_size(sources), "bytes of input")
    documents = sentences = 0
    is_open = False
    with _outputs(config) as outputs:
        for split in in_order(work, blocks, config.num_workers):
            if is_open and split.ends_document_first:
                outputs[documents % len(outputs)].write(b"\n")
                documents, is_open = documents + 1, False
            documents += _deal_out(split, outputs, documents)
            sentences += split.sentences
            is_open = split.is_open if split.text else is_open
            progress.advance(split.packed_bytes)
        if not sentences:
            raise UserError(f"{config.input_files[0]}: has no text; check --input_format.")
    progress.close()
    return SentenceCounts(documents, sentences)


def split_block(block: TextBlock, reading: Reading, language: str) -> SplitBlock:
    """Splits one block (in a worker process)."""
    lines: list[str] = []
    documents = sentences = 0
    ends_first = False
    for paragraph in paragraphs_of(block, reading):
        if paragraph is not None:
            found = split_paragraph(paragraph, _language(paragraph, language))
            sentences += len(found)
            lines += found
        elif not lines:
            ends_first = True
        elif lines[-1]:
            documents += 1
            lines.append("")
    text = "".join(f"{line}\n" for line in lines).encode()
    is_open = bool(lines) and bool(lines[-1])
    packed = block.lines.packed_bytes
    return SplitBlock(ends_first, text, documents, sentences, is_open, packed)


def _language(paragraph: str, language: str) -> str:
    if language != "auto":
        return language
    if paragraph.isascii():
        return "en"
    scripts = (code for code, script in _LANGUAGES_BY_SCRIPT if script.search(paragraph))
    return next(scripts, "en")


def _deal_out(split: SplitBlock, outputs: list[IO[bytes]], documents: int) -> int:
    """Writes a block's documents, the first of them number `documents`; gives how many ended."""
    if len(outputs) == 1:
        outputs[0].write(split.text)
        return split.documents
    for number, document in enumerate(re.findall(rb"(?:.+\n)+\n?", split.text), documents):
        outputs[number % len(outputs)].write(document)
    return split.documents


def _packed_size(sources: list[Source]) -> int | None:
    if any(source.form == "tfds" for source in sources):
        return None
    return sum(Path(source.name).stat().st_size for source in sources)


@contextlib.contextmanager
def _outputs(config: SplitSentencesConfig) -> Iterator[list[IO[bytes]]]:
    if (config.output_file is None) == (config.output_dir is None):
        raise UserError("Give either --output_file or --output_dir (with --num_shards).")
    if config.output_file is not None:
        paths = [Path(config.output_file)]
        if config.num_shards != 1:
            raise UserError("--num_shards needs --output_dir instead of --output_file.")
    else:
        names = (
            f"sentences-{number:05d}-of-{config.num_shards:05d}.txt"
            for number in range(config.num_shards)
        )
        paths = [Path(config.output_dir or "") / name for name in names]
    make_folder(paths[0].parent)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(open_whole(path, "wb")) for path in paths]
