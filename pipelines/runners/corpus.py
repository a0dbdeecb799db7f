"""The tokenized corpus on disk: flat integer files that serve every recipe.

A folder holds `ids.bin` (all tokens), `sentences.bin` (where each sentence begins), `documents.bin`
(where each document begins) and, written last, `corpus.json`. Text is tokenized block by block into
files of their own, which are joined at the end, so an interrupted run keeps its finished blocks.
"""

import dataclasses
import functools
import hashlib
import io
import mmap
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from keras_bert_impl.files import open_input, open_whole
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.chunks import pair_starts
from pipelines.pretraining_data.documents import (
    FileBlock,
    SentenceBlock,
    encode_block,
    no_sentence,
    read_lines,
    was_changed,
)
from pipelines.pretraining_data.recipe import PretrainingDataConfig, VocabularyFacts
from pipelines.records.description import base_name


class MappedArray:
    """A flat array in a file, memory-mapped.

    Pages that were read count as this process's memory until `forget` gives them back; they stay in
    the system's page cache, so reading them again is cheap.
    """

    def __init__(self, path: str | os.PathLike[str], dtype: DTypeLike) -> None:
        with Path(path).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.array: NDArray = np.frombuffer(self._map, dtype)

    def forget(self) -> None:
        """Gives the pages back to the system."""
        self._map.madvise(mmap.MADV_DONTNEED)


_END = "corpus.json"
_FILES = ("ids.bin", "sentences.bin", "documents.bin")
_DOCUMENTS_AT_ONCE = 100_000  # whose lengths are looked at: bounds memory


@dataclasses.dataclass(frozen=True)
class BlockTask:
    """One text block to tokenize, and where its tokens go; `plain` is without TensorFlow."""

    block: FileBlock
    config: PretrainingDataConfig
    vocab_sha256: str  # the file of the vocabulary may have other content the next time
    target: str
    stamp: tuple[int, int]
    plain: bool = False


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A tokenized corpus; without a folder, its figures alone."""

    folder: str
    dtype: str
    text_bytes: int
    text_sha256: str
    documents: int
    sentences: int
    tokens: int
    words: int
    unknown_words: int

    def source(self, files: Sequence[str]) -> dict[str, Any]:
        """The description's entries about the text, which is in these files."""
        names = (os.fsencode(base_name(path)).decode("utf-8", "replace") for path in files)
        figures = dataclasses.asdict(self)
        del figures["folder"], figures["dtype"]
        figures = {name.removeprefix("text_"): value for name, value in figures.items()}
        return {"files": [*names], **figures}

    def ids(self) -> MappedArray:
        """All tokens, unsigned [tokens]."""
        return MappedArray(Path(self.folder) / "ids.bin", self.dtype)

    def sentence_offsets(self) -> MappedArray:
        """Tokens before each sentence, int64 [sentences + 1]."""
        return MappedArray(Path(self.folder) / "sentences.bin", np.int64)

    def document_bounds(self) -> MappedArray:
        """Sentences before each document, int64 [documents + 1]."""
        return MappedArray(Path(self.folder) / "documents.bin", np.int64)

    def pair_starts(self, token_budget: int) -> int:
        """How many sentences a pair with its true next one can begin with; see `pair_starts`."""
        offsets, bounds = self.sentence_offsets().array, self.document_bounds().array
        starts = 0
        for first in range(0, self.documents, _DOCUMENTS_AT_ONCE):
            part = bounds[first : first + _DOCUMENTS_AT_ONCE + 1]
            lengths = np.diff(offsets[part[0] : part[-1] + 1])
            starts += pair_starts(lengths, np.diff(part), token_budget)
        return starts


@functools.cache
def _tokenizer(config: PretrainingDataConfig, vocab_sha256: str, plain: bool) -> tuple:
    """Gives the tokenizer, the ids' type and what counts their words; made once a process."""
    text = config.text_settings(Vocabulary.load(config.vocab_file))
    if text.vocabulary.sha256 != vocab_sha256:
        raise was_changed(config.vocab_file)
    made = PlainTokenizer(text) if plain else Tokenizer(text)
    return made, VocabularyFacts.of(text.vocabulary).dtype, WordCounter(text.vocabulary)


def stamp_of(file: IO[bytes]) -> tuple[int, int]:
    """Size and modification time (in nanoseconds) of an open file; a change shows in them."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def tokenize_blocks(tasks: Sequence[BlockTask], threads: int) -> int:
    """Tokenizes blocks in threads; gives back the bytes of text.

    TensorFlow's kernels work in threads side by side, and one copy of TensorFlow serves all.
    """
    first = tasks[0]
    _tokenizer(first.config, first.vocab_sha256, first.plain)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(tokenize_block, tasks))


def tokenize_block(task: BlockTask) -> int:
    """Tokenizes a block into its file; gives back the bytes of text."""
    tokenizer, dtype, counter = _tokenizer(task.config, task.vocab_sha256, task.plain)
    text = task.block
    with open_input(text.path) as file:
        file.seek(text.start)
        data = file.read(text.end - text.start)
        now = stamp_of(file)  # after the reading, so that a change meanwhile is noticed
    if now != task.stamp or len(data) != text.end - text.start:
        raise was_changed(text.path)
    lines = read_lines(text, data, task.config.text_encoding)
    block = encode_block(lines, tokenizer.encode_lines, dtype)
    count = counter.count(block.ids)
    content = io.BytesIO()
    for array in (block.ids, block.sentence_lengths, block.document_sizes):
        np.save(content, array)
    np.save(content, np.frombuffer(hashlib.sha256(data).digest(), np.uint8))
    np.save(content, np.array([count.words, count.unknown], np.int64))
    with open_whole(task.target, "wb") as file:
        file.write(content.getbuffer())
    return len(data)


def load_block(path: str | Path) -> tuple[SentenceBlock, bytes, WordCount]:
    """Reads what `tokenize_block` wrote: the block, the SHA-256 of its text, and its words."""
    with Path(path).open("rb") as file:
        ids, lengths, sizes, digest, count = (np.load(file) for _ in range(5))
    return SentenceBlock(ids, lengths, sizes), digest.tobytes(), WordCount(*count.tolist())


def find_corpus(folder: Path) -> Corpus | None:
    """The corpus in a folder, if all of it is there.

    A run that was killed while it removed the folder may have left any of its files.
    """
    if not all((folder / name).is_file() for name in (*_FILES, _END)):
        return None
    return Corpus(**{**read_json_object(folder / _END), "folder": str(folder)})


def assemble(folder: Path, blocks: Sequence[Path], text_bytes: int, inputs: str) -> Corpus:
    """Joins block files into a corpus and removes them."""
    tokens = sentences = documents = 0
    words = WordCount()
    digest = hashlib.sha256()
    dtype = "uint16"
    with (
        open_whole(folder / "ids.bin", "wb") as ids_file,
        open_whole(folder / "sentences.bin", "wb") as sentences_file,
        open_whole(folder / "documents.bin", "wb") as documents_file,
    ):
        for file in (sentences_file, documents_file):
            file.write(np.zeros(1, np.int64).tobytes())
        for path in blocks:
            block, text_digest, count = load_block(path)
            ids_file.write(block.ids.tobytes())
            sentences_file.write((np.cumsum(block.sentence_lengths) + tokens).tobytes())
            documents_file.write((np.cumsum(block.document_sizes) + sentences).tobytes())
            tokens += len(block.ids)
            sentences += len(block.sentence_lengths)
            documents += len(block.document_sizes)
            words += count
            dtype = block.ids.dtype.name
            digest.update(text_digest)
        if not tokens:
            raise no_sentence(inputs)
    corpus = Corpus(
        folder=str(folder),
        dtype=dtype,
        tokens=tokens,
        sentences=sentences,
        documents=documents,
        text_bytes=text_bytes,
        text_sha256=digest.hexdigest(),
        words=words.words,
        unknown_words=words.unknown,
    )
    with open_whole(folder / _END) as file:
        # Without the folder's name: it may be moved.
        file.write(json_text({**dataclasses.asdict(corpus), "folder": ""}))
    for path in blocks:
        path.unlink()
    return corpus
