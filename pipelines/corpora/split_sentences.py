"""The job behind `split_sentences`: documents in, one sentence a line out."""

import contextlib
import functools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from keras_bert_impl import files
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import Options, nested, option
from keras_bert_impl.progress import Progress
from pipelines.corpora import documents
from pipelines.corpora.sentences import are_cut, split_paragraph
from pipelines.processes import in_order

_LOGGER = logging.getLogger(__name__)
_PART = re.compile(rb"(?:.+\n)*\n|(?:.+\n)+")
_SHARD = re.compile(r"sentences-\d{5,}-of-\d{5,}\.txt")
_LANGUAGES_BY_SCRIPT = (
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)
_THREE_AND_TWO = (
    "ara=ar ces=cs chi=zh cze=cs dan=da deu=de dut=nl ell=el eng=en fin=fi fra=fr fre=fr ger=de "
    "gre=el heb=he hin=hi hun=hu ind=id ita=it jpn=ja kor=ko nld=nl nor=no pol=pl por=pt ron=ro "
    "rum=ro rus=ru spa=es swe=sv tam=ta tha=th tur=tr ukr=uk vie=vi zho=zh"
)
_OF_TWO_LETTERS = dict(pair.split("=") for pair in _THREE_AND_TWO.split())
# Of three letters there are thousands.
_CODE = re.compile(
    "auto|[a-z]{3}|a[abefkmnrsvyz]|b[aeghimnors]|c[aehorsuvy]|d[aevz]|e[elnostu]|f[afijory]|g[adlnuv]|"
    "h[aeiortuyz]|i[adegikostu]|j[av]|k[agi-orsu-wy]|l[abginotuv]|m[ghiklnrsty]|n[abdeglnorvy]|"
    "o[cjmrs]|p[ailst]|qu|r[mnouw]|s[acdeghik-oq-w]|t[aeghiklnorstwy]|u[gkrz]|v[eio]|w[ao]|xh|y[io]|"
    "z[ahu]"
)


@dataclass(frozen=True)
class SplitSentencesConfig(Options):
    """The options of splitting sentences."""

    input_file: Sequence[str] = option(
        (), "The documents: paths, folders, glob patterns or tfds:NAME:SPLIT, separated by commas."
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
        "they look as if they were cut at one width, as in mails and man pages; a warning says so.",
    )
    num_workers: int | None = option(
        None,
        "How many processes work; by default one for each processor. The output does not depend "
        "on it.",
        at_least=1,
        at_most=1024,
    )
    reading: documents.Reading = nested(documents.Reading)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _CODE.fullmatch(self.language_code):
            raise UserError(
                f"`language={self.language}`: is no ISO 639 code of two or three letters; give one "
                "such as en, ko or de, or auto."
            )

    @property
    def language_code(self) -> str:
        """The language without its region, as ko of KO and ko_KR."""
        code = re.split("[-_]", self.language.lower())[0]
        return _OF_TWO_LETTERS.get(code, code)


class SplitBlock(NamedTuple):
    """A block's sentences, one a line, with an empty line where a document ends.

    It begins with an empty line where the document that was open before ends at once.
    """

    text: bytes
    sentences: int
    packed_bytes: int


def split_sentences(config: SplitSentencesConfig) -> str:
    """Writes the sentences, the same bytes whatever the number of workers; says how many."""
    sources = documents.find_sources(config.input_file, encoding=config.reading.text_encoding)
    wrapped: list[str] = []
    blocks = (block for source in sources for block in _read(source, config, wrapped))
    work = functools.partial(split_block, reading=config.reading, language=config.language_code)
    progress = Progress("split sentences", documents.packed_size(sources), "bytes of input")
    ended = sentences = 0
    is_open = False
    with _outputs(config, sources) as outputs:
        for split in in_order(work, blocks, config.num_workers):
            text = split.text if is_open else split.text.removeprefix(b"\n")
            for part in _PART.findall(text):  # of a document: the whole, or to the block's end
                path, file = outputs[ended % len(outputs)]
                with files.writing(path):
                    file.write(part)
                is_open = not (b"\n" + part).endswith(b"\n\n")
                ended += not is_open
            sentences += split.sentences
            progress.advance(split.packed_bytes)
        if not sentences:
            raise UserError(f"{config.input_file[0]}: has no text; name another file.")
    progress.close()
    if wrapped:
        _LOGGER.warning(
            "%s%s: lines seem to be cut at one width, so those of a paragraph were joined; give "
            "`join_lines=False` to read each as a paragraph. An empty line ends a document; where "
            "it ends a paragraph only, give `one_document_per_file=True`.",
            *(wrapped[0], f" (and {len(wrapped) - 1:,} more)" if len(wrapped) > 1 else ""),
        )
    return f"{ended} documents, {sentences} sentences"


def _read(
    source: documents.TextSource, config: SplitSentencesConfig, wrapped: list[str]
) -> Iterator[documents.TextBlock]:
    """The blocks of a source, and whether their lines are cut, which the first one shows."""
    reading, is_cut = config.reading, bool(config.join_lines)
    for number, block in enumerate(documents.read_blocks(source, reading)):
        if number == 0 and config.join_lines is None:
            is_cut = are_cut(documents.raw_paragraphs_of(block, reading))
            wrapped += [source.name] if is_cut else []
        yield block._replace(is_cut=is_cut)


def split_block(
    block: documents.TextBlock, reading: documents.Reading, language: str
) -> SplitBlock:
    """Splits one block (in a worker process)."""
    lines: list[str] = []
    for paragraph in documents.paragraphs_of(block, reading):
        if paragraph is not None:
            lines += split_paragraph(paragraph, _language(paragraph, language))
        elif not lines or lines[-1]:
            lines.append("")
    text = "".join(f"{line}\n" for line in lines).encode()
    return SplitBlock(text, sum(map(bool, lines)), block.lines.packed_bytes)


def _language(paragraph: str, language: str) -> str:
    if language != "auto":
        return language
    found = (code for code, script in _LANGUAGES_BY_SCRIPT if script.search(paragraph))
    return "en" if paragraph.isascii() else next(found, "en")


@contextlib.contextmanager
def _outputs(
    config: SplitSentencesConfig, sources: list[documents.TextSource]
) -> Iterator[list[tuple[Path, IO[bytes]]]]:
    """Opens the files to write; they get their names together, when all are on the disk."""
    paths = _output_paths(config)
    files.check_output(paths[0])
    if len(paths) > 1:
        files.check_plain(paths)
    # The files of a set with another number of shards: a pattern would match them as well.
    others = () if config.output_dir is None else Path(config.output_dir).iterdir()
    shards = {path for path in others if _SHARD.fullmatch(path.name)}
    parameter = "output_file" if config.output_dir is None else "output_dir"
    documents.refuse_output_among_input(documents.files_of(sources), {*paths, *shards}, parameter)
    files.allow_open_files(len(paths))
    with contextlib.ExitStack() as stack:
        outputs = [(path, stack.enter_context(files.open_whole(path, "wb"))) for path in paths]
        yield outputs
        # Flushing takes long, renaming does not: for a moment only there is no whole set.
        for path, file in outputs:
            with files.writing(path):
                files.flush(file)
        # Before any new file has its name, so that old and new ones never pass for one set.
        for path in shards:
            path.unlink(missing_ok=True)


def _output_paths(config: SplitSentencesConfig) -> list[Path]:
    if (config.output_file is None) == (config.output_dir is None):
        raise UserError("give either `output_file` or `output_dir` (with `num_shards`).")
    if config.output_file is not None:
        if config.num_shards != 1:
            raise UserError("`num_shards` needs `output_dir` instead of `output_file`.")
        return [files.followed(config.output_file)]
    folder, count = Path(config.output_dir or ""), config.num_shards
    return [folder / f"sentences-{number:05d}-of-{count:05d}.txt" for number in range(count)]
