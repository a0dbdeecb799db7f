"""The tokenized corpus, compared with the tokenizer's answers line by line."""

from dataclasses import replace
from pathlib import Path

import pytest

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.documents import cut_into_blocks
from pipelines.runners.corpus import BlockTask, assemble, stamp_of, tokenize_block, tokenize_blocks
from tests.support.pretraining_corpus import make_config


@pytest.fixture
def tasks(tmp_path) -> list[BlockTask]:
    """The tiny corpus in blocks of about 300 bytes."""
    config = make_config(tmp_path)
    sha256 = Vocabulary.load(config.vocab_file).sha256
    with Path(config.input_file).open("rb") as file:
        blocks, stamp = cut_into_blocks(config.input_file, file, 300), stamp_of(file)
    return [
        BlockTask(block, config, sha256, str(tmp_path / f"block-{number}"), stamp, plain=True)
        for number, block in enumerate(blocks)
    ]


def _assembled(tasks: list[BlockTask], folder: Path):
    for task in tasks:
        tokenize_block(task)
    folder.mkdir()
    return assemble(folder, [Path(task.target) for task in tasks], 99, "corpus.txt")


def test_the_corpus_holds_every_token_once_and_in_order(tmp_path, tasks):
    assert len(tasks) > 3
    corpus = _assembled(tasks, tmp_path / "corpus")
    tokenizer = Tokenizer(TextSettings(Vocabulary.load(tmp_path / "vocab.txt")))
    text = (tmp_path / "corpus.txt").read_text()
    documents = [document.splitlines() for document in text.split("\n\n") if document.strip()]
    ids, sentence_offsets, document_bounds = [], [0], [0]
    for document in documents:
        for line in document:
            ids += tokenizer.encode_lines([line])[0].tolist()
            sentence_offsets.append(len(ids))
        document_bounds.append(len(sentence_offsets) - 1)
    assert corpus.ids().array.tolist() == ids
    assert corpus.sentence_offsets().array.tolist() == sentence_offsets
    assert corpus.document_bounds().array.tolist() == document_bounds
    assert (corpus.tokens, corpus.documents) == (len(ids), len(documents))
    assert not list(tmp_path.glob("block-*"))


def test_threads_with_the_fast_tokenizer_give_the_same_tokens(tmp_path, tasks):
    plain = _assembled(tasks, tmp_path / "plain")
    fast = [replace(task, plain=False) for task in tasks]
    assert tokenize_blocks(fast, threads=3) == (tmp_path / "corpus.txt").stat().st_size
    (tmp_path / "fast").mkdir()
    made = assemble(tmp_path / "fast", [Path(task.target) for task in fast], 99, "corpus.txt")
    assert (made.ids().array == plain.ids().array).all()
    assert made.text_sha256 == plain.text_sha256
