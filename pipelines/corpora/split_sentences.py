"""The job behind `split_sentences`: documents in, one sentence a line out."""

import contextlib
import functools
import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, flush, followed, open_whole
from keras_bert_impl.options import check_options, nested, option
from keras_bert_impl.progress import Progress
from pipelines.corpora.documents import (
    Reading,
    TextBlock,
    decode_block,
    paragraphs_of,
    raw_paragraphs_of,
    read_blocks,
)
from pipelines.corpora.sentences import find_width, split_paragraph
from pipelines.corpora.sources import (
    Source,
    find_sources,
    packed_size,
    refuse_output_among_input,
)
from pipelines.corpora.unpacking import say_what_was_dropped
from pipelines.processes import in_order

_LOGGER = logging.getLogger(__name__)
# A file that unpacks to far more than a text does is known after 64 of them.
_BLOCKS_LOOKED_AT = 80
_SHARD = re.compile(r"sentences-\d{5,}-of-\d{5,}\.txt")
_LANGUAGES_BY_SCRIPT = (
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)


@dataclass(frozen=True)
class SplitSentencesConfig:
    """The options of splitting sentences."""

    input_file: Sequence[str] = option(
        (),
        "The documents: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas.",
    )
    output_file: str | None = option(None, "Where to write the sentences, in one file.")
    output_dir: str | None = option(
        None,
        "The folder for several files instead: sentences-00000-of-00010.txt and so on; documents "
        "are dealt out to them in turn. Files of that form from another number of shards are "
        "removed.",
    )
    num_shards: int = option(
        1, "How many files to write into the folder.", at_least=1, at_most=10_000
    )
    language: str = option(
        "auto",
        "The language as an ISO 639 code such as en, ko or de; auto recognises Korean, Japanese "
        "and Chinese by their scripts and takes the rest for English.",
    )
    join_lines: bool | None = option(
        None,
        "Whether the lines of a paragraph, which an empty line ends, are joined; by default where "
        "they look as if they were cut at one width, as in mails and man pages, which is said.",
    )
    num_workers: int | None = option(
        None,
        "How many processes work; by default one for each processor. The output does not depend "
        "on it.",
        at_least=1,
        at_most=1024,
    )
    reading: Reading = nested(Reading)

    def __post_init__(self) -> None:
        check_options(self)


class SentenceCounts(NamedTuple):
    """The files that were written."""

    documents: int
    sentences: int


class SplitBlock(NamedTuple):
    """A block's sentences.

    Attributes:
        ends_document_first: whether the document that was open before the block ends at once.
        text: the sentences, one a line, an empty line after each document that ends.
        documents: how many documents end within `text`.
        sentences: the number of sentences.
        is_open: whether the last document of `text` goes on.
        packed_bytes: how much of the input this was.
        dropped_bytes: how many bytes were left out because they are no UTF-8.
    """

    ends_document_first: bool
    text: bytes
    documents: int
    sentences: int
    is_open: bool
    packed_bytes: int
    dropped_bytes: int


def split_sentences(config: SplitSentencesConfig) -> SentenceCounts:
    """Writes the sentences; the same bytes whatever the number of workers."""
    sources = find_sources(config.input_file, encoding=config.reading.text_encoding)
    wrapped: list[str] = []
    blocks = (block for source in sources for block in _read(source, config, wrapped))
    work = functools.partial(split_block, reading=config.reading, language=config.language)
    progress = Progress("split sentences", packed_size(sources), "bytes of input")
    documents = sentences = dropped = 0
    is_open = False
    with _outputs(config, sources) as outputs:
        for split in in_order(work, blocks, config.num_workers):
            if is_open and split.ends_document_first:
                outputs[documents % len(outputs)].write(b"\n")
                documents, is_open = documents + 1, False
            documents += _deal_out(split, outputs, documents)
            sentences += split.sentences
            dropped += split.dropped_bytes
            is_open = split.is_open if split.text else is_open
            progress.advance(split.packed_bytes)
        if not sentences:
            raise UserError(f"{config.input_file[0]}: has no text; name another file.")
    progress.close()
    say_what_was_dropped(dropped)
    if wrapped:
        more = f" (and {len(wrapped) - 1:,} more)" if len(wrapped) > 1 else ""
        _LOGGER.warning(
            "%s%s: lines seem to be cut at one width, so those of a paragraph were joined; give "
            "`join_lines=False` to read each as a paragraph. An empty line ends a document; where "
            "it ends a paragraph only, give `one_document_per_file=True`.",
            *(wrapped[0], more),
        )
    return SentenceCounts(documents, sentences)


def _read(source: Source, config: SplitSentencesConfig, wrapped: list[str]) -> Iterator[TextBlock]:
    """The blocks of a source with the width at which lines are cut, which the first one shows."""
    reading, width = config.reading, 0 if config.join_lines else None
    for number, block in enumerate(read_blocks(source, reading)):
        if number == 0 and config.join_lines is None:
            width = find_width(raw_paragraphs_of(decode_block(block, reading), reading))
            wrapped += [source.name] if width else []
        yield block._replace(width=width)


def check_text(config: SplitSentencesConfig) -> None:
    """Looks at the beginning of the text, for a job that has other long work before it reads all.

    What is wrong with its form, its encoding, its fields or its packing shows in a second or two.
    Pipes and data sets are left alone: they are read once.
    """
    reading = config.reading
    sources = find_sources(config.input_file, encoding=reading.text_encoding)
    files = (source for source in sources if Path(source.name).is_file())
    blocks = (block for source in files for block in read_blocks(source, reading))
    for block in itertools.islice(blocks, _BLOCKS_LOOKED_AT):
        for _ in raw_paragraphs_of(decode_block(block, reading), reading):
            pass


def split_block(block: TextBlock, reading: Reading, language: str) -> SplitBlock:
    """Splits one block (in a worker process)."""
    lines: list[str] = []
    documents = sentences = 0
    ends_first = False
    decoded = decode_block(block, reading)
    for paragraph in paragraphs_of(decoded, reading, block.width):
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
    dropped = decoded.dropped_bytes
    return SplitBlock(ends_first, text, documents, sentences, is_open, packed, dropped)


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


@contextlib.contextmanager
def _outputs(config: SplitSentencesConfig, sources: list[Source]) -> Iterator[list[IO[bytes]]]:
    """Opens the files to write; they get their names together, when all are on the disk."""
    paths = _output_paths(config)
    for path in paths:
        check_output(path, grows=len(paths) > 1)
    refuse_output_among_input(
        (source.name for source in sources if source.form != "tfds"),
        [*paths, *_older_shards(config, paths)],
        "output_file" if config.output_dir is None else "output_dir",
    )
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_whole(path, "wb")) for path in paths]
        yield files
        # Flushing takes long, renaming does not: for a moment only there is no whole set.
        for file in files:
            flush(file)
        older = _older_shards(config, paths)
        # Before any new file has its name, so that old and new ones never pass for one set. The
        # first file of a set goes first and comes last: without it a set is not whole.
        for path in sorted({*older, *(paths if len(paths) > 1 else [])}):
            path.unlink(missing_ok=True)
    if older:
        _LOGGER.info(
            "%s: removed %d files of an earlier run with another `num_shards`.",
            config.output_dir,
            len(older),
        )


def _output_paths(config: SplitSentencesConfig) -> list[Path]:
    if (config.output_file is None) == (config.output_dir is None):
        raise UserError("give either `output_file` or `output_dir` (with `num_shards`).")
    if config.output_file is not None:
        if config.num_shards != 1:
            raise UserError("`num_shards` needs `output_dir` instead of `output_file`.")
        return [followed(config.output_file)]
    names = (
        f"sentences-{number:05d}-of-{config.num_shards:05d}.txt"
        for number in range(config.num_shards)
    )
    return [Path(config.output_dir or "") / name for name in names]


def _older_shards(config: SplitSentencesConfig, paths: list[Path]) -> list[Path]:
    """The files of a set with another number of shards: a pattern would match them as well."""
    if config.output_dir is None:
        return []
    found = (path for path in Path(config.output_dir).iterdir() if _SHARD.fullmatch(path.name))
    return sorted(set(found) - set(paths))
