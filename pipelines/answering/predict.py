"""The answers of a model to texts of a command line or a file, block by block."""

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.progress import Progress
from keras_bert_impl.serving.answerer import Answer, Answerer, ask
from keras_bert_impl.tokenization.unknown_words import check_words
from keras_bert_impl.tokenization.vocabulary import MASK
from pipelines.answering.asked_texts import (
    Placed,
    asked_texts,
    chosen_answerer,
    is_stream,
    texts_in,
)
from pipelines.answering.config import JSON, PredictConfig
from pipelines.answering.opening import OpenAnsweringModel, no_texts, open_answering_model
from pipelines.answering.tables import table_of

_BLOCK = 1024
_BLOCK_OF_A_STREAM = 32
_SAMPLE = 500  # instances that the scales of int8 are chosen from
_INSTANCE = re.compile(r"instance (\d+): ")


def predict(config: PredictConfig) -> int:
    """Answers everything that is asked.

    Memory is that of the model and of a block of texts.

    Returns:
        How many instances were answered.
    """
    if config.output_file:
        check_output(config.output_file)
    model: OpenAnsweringModel | None = None

    def first_texts() -> Iterable[Any]:
        if config.input_file is None or is_stream(config.input_file):
            return no_texts()
        assert model is not None
        some = asked_texts(config, chosen_answerer(model, config))
        return [dict(one.instance) for one in itertools.islice(some, _SAMPLE)]

    model = open_answering_model(config, first_texts)
    try:
        with _output(config) as file:
            return _answer_all(config, model, file)
    finally:
        model.close()


@contextlib.contextmanager
def _output(config: PredictConfig) -> Iterator[IO[str]]:
    if config.output_file is None:
        yield sys.stdout
        return
    with open_whole(followed(config.output_file)) as file:
        yield file


def _answer_all(config: PredictConfig, model: OpenAnsweringModel, file: IO[str]) -> int:
    answerer = chosen_answerer(model, config)
    labels = [str(label) for label in model.description.get("labels", ())]
    streams = config.input_file is not None and is_stream(config.input_file)
    progress = Progress("predict", None, "texts") if config.output_file else None
    count = 0
    asked = asked_texts(config, answerer)
    for block in _blocks(asked, _BLOCK_OF_A_STREAM if streams else _BLOCK):
        if not count:
            _check_words(config, model, block)
        for one, answer in zip(block, _answers(answerer, block), strict=True):
            if config.format == JSON:
                line = json.dumps({"input": one.instance, "answer": answer}, ensure_ascii=False)
            else:
                line = table_of(answerer, labels, one.instance, answer)
            file.write(_writable(line) + "\n")
        count += len(block)
        if progress:
            progress.advance(len(block))
        else:
            file.flush()
    if progress:
        progress.close()
    return count


def _blocks(asked: Iterable[Placed], size: int) -> Iterator[list[Placed]]:
    source = iter(asked)
    while block := list(itertools.islice(source, size)):
        yield block


def _answers(answerer: Answerer, block: list[Placed]) -> list[Answer]:
    try:
        return ask(answerer, [one.instance for one in block])
    except UserError as error:
        found = _INSTANCE.match(str(error))
        if found is None:
            raise
        where = block[int(found[1]) - 1].where
        raise UserError(f"{where}: {str(error)[found.end() :]}") from error


def _check_words(config: PredictConfig, model: OpenAnsweringModel, block: list[Placed]) -> None:
    """Warns once where the vocabulary does not fit the first texts."""
    texts = texts_in(one.instance for one in block)
    words = [text.replace(MASK, " ") for text in texts]
    check_words(words, model.text, config.input_file or "the texts", may_refuse=False)


def _writable(text: str) -> str:
    """Text without half of a surrogate pair, which no file holds."""
    return text.encode("utf-8", "replace").decode("utf-8")
