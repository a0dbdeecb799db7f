"""The model that training starts from: what it lacks is made of the text, before any training.

New tokens get vectors of the company that they keep (`neighbours`). A model without a head for
masked words gets one that guesses by frequency: its bias is the logarithm of how often a token is
used. Training would take hundreds of steps to come there, and the gradients of those steps, the
same for every word, would pull the whole encoder towards one answer.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.convert import PortableModel, read_portable, write_portable
from keras_bert_impl.config import BertConfig
from keras_bert_impl.files import text_lines
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.adaptation.neighbours import Neighbours, placed

_TABLE, _HEAD = "embeddings/token_embeddings", "masked_lm"
_BIAS = f"{_HEAD}/output_bias"
_LINES_AT_ONCE, _MOST_TOKENS = 20_000, 10_000_000  # more text tells little more of neighbours


def make_start(
    checkpoint: Path,
    sentences: Sequence[str],
    known: Sequence[str],
    description: Mapping[str, Any] | None,
    seed: int,
    folder: Path,
) -> dict[str, Any]:
    """Writes the model that training starts from.

    Args:
        checkpoint: the model, with its new tokens.
        sentences: the files of sentences that are trained on.
        known: the tokens that the model had before.
        description: what the user says of it because no file beside it does; None of our own.
        seed: fixes the weights of a new head.
        folder: gets the model.

    Returns:
        How many new tokens have vectors of their neighbours, and whether there is a new head.
    """
    model = read_portable(checkpoint, **(description or {}))
    near = count_neighbours(model, sentences)
    old = {*known}
    new = [number for number, token in enumerate(model.text.vocabulary.tokens) if token not in old]
    made, placed_tokens = with_placed_tokens(model, new, near)
    lacks_head = _BIAS not in model.weights
    if lacks_head:
        made = with_head(made, near.counts, seed)
    write_portable(made, folder, "hugging_face")
    return {"placed_tokens": placed_tokens, "new_head": lacks_head}


def count_neighbours(model: PortableModel, sentences: Sequence[str]) -> Neighbours:
    """The neighbours of a model's tokens in files of sentences, of much text in its beginning."""
    near, tokenizer = Neighbours(model.config.vocab_size), PlainTokenizer(model.text)
    for lines in _blocks(sentences):
        block = tokenizer.encode_lines(lines)
        near.add(block.ids, block.offsets)
        if near.counts.sum() >= _MOST_TOKENS:
            break
    return near


def with_placed_tokens(
    model: PortableModel, new: Sequence[int], near: Neighbours
) -> tuple[PortableModel, int]:
    """The model with vectors of their neighbours for its new tokens, and how many have one."""
    if not new:
        return model, 0
    used, vectors = near.vectors(model.config.hidden_size)
    table = placed(model.weights[_TABLE], new, used, vectors)
    moved = dataclasses.replace(model, weights={**model.weights, _TABLE: table})
    return moved, int(np.isin(used, np.fromiter(new, np.int64)).sum())


def with_head(model: PortableModel, counts: NDArray[np.int64], seed: int) -> PortableModel:
    """The model with a head for masked words that guesses by the frequencies of tokens.

    Args:
        model: the model.
        counts: how often each token is used [vocabulary].
        seed: fixes the rest of the head, which is random.
    """
    often = counts + 0.5  # a token that the text lacks is rare, not impossible
    bias = np.log(often / often.sum())
    head = {**_random_head(model.config, seed), _BIAS: bias.astype(np.float32)}
    return dataclasses.replace(model, weights={**model.weights, **head})


def _random_head(config: BertConfig, seed: int) -> dict[str, NDArray[np.float32]]:
    width, draw = config.hidden_size, np.random.default_rng(seed)
    kernel = draw.normal(0, config.initializer_range, (width, width))
    zeros, ones = np.zeros(width, np.float32), np.ones(width, np.float32)
    return {
        f"{_HEAD}/transform/kernel": kernel.astype(np.float32),
        f"{_HEAD}/transform/bias": zeros,
        f"{_HEAD}/layer_norm/gamma": ones,
        f"{_HEAD}/layer_norm/beta": zeros,
    }


def _blocks(sentences: Sequence[str]) -> Iterator[list[str]]:
    lines = (line for path in sentences for line in text_lines(path) if line)
    while block := list(itertools.islice(lines, _LINES_AT_ONCE)):
        yield block
