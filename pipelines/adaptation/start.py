"""The model that training starts from: what it lacks is made of the text, before any training.

New tokens get vectors of the company that they keep: the mean of the parts that a new word was cut
into says little of it, and nothing where the parts are letters of a script that the model hardly
knows. It is counted which tokens stand near which, the counts become pointwise mutual information
(positive values, with smoothed contexts: Levy, Goldberg and Dagan 2015) and its largest singular
vectors one vector a token. Tokens that the model knew before have a vector of both kinds: the
rotation that takes one kind to the other best (Schönemann 1966) takes the new tokens along.

A model without a head for masked words gets one that guesses by frequency: its bias is the
logarithm of how often a token is used. Training would take hundreds of steps to come there, and the
gradients of those steps, the same for every word, would pull the whole encoder towards one answer.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.convert import PortableModel, read_portable, write_portable
from keras_bert_impl.checkpoints.grow import grow_vocabulary
from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.config import BertConfig
from keras_bert_impl.files import open_whole, text_lines
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.adaptation.config import AdaptConfig
from pipelines.adaptation.words import Coverage, choose_words, count_words_of

WINDOW = 5
_SMOOTHING = 0.75  # rare contexts would seem more telling than they are
_FEWEST = 5  # occurrences of a token that has a vector
_TABLE, _HEAD = "embeddings/token_embeddings", "masked_lm"
_BIAS = f"{_HEAD}/output_bias"
_LINES_AT_ONCE, _MOST_TOKENS = 20_000, 10_000_000  # more text tells little more of neighbours


class Neighbours:
    """Counts, sentence by sentence, which tokens of a vocabulary of `size` stand near which.

    Example:
        >>> found = Neighbours(4)
        >>> found.add(np.array([1, 2, 3, 1]), np.array([0, 3, 4]))
        >>> found.counts.tolist()
        [0, 2, 1, 1]
        >>> found.near.toarray()[1].tolist()
        [0.0, 0.0, 1.0, 0.5]
    """

    def __init__(self, size: int) -> None:
        from scipy.sparse import csr_array

        self.counts: NDArray[np.int64] = np.zeros(size, np.int64)
        self.near = csr_array((size, size), dtype=np.float32)

    def add(self, ids: NDArray, offsets: NDArray) -> None:
        """Counts sentences: ids [tokens], and where each begins, with the end [sentences + 1]."""
        from scipy.sparse import coo_array, csr_array

        ids = ids.astype(np.int64)
        sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        left, right, weight = [], [], []
        for distance in range(1, WINDOW + 1):
            together = sentence[distance:] == sentence[:-distance]
            left.append(ids[:-distance][together])
            right.append(ids[distance:][together])
            weight.append(np.full(int(together.sum()), 1 / distance, np.float32))
        a, b, w = (np.concatenate(parts) for parts in (left, right, weight))
        pairs = (np.concatenate([w, w]), (np.concatenate([a, b]), np.concatenate([b, a])))
        self.near = self.near + csr_array(coo_array(pairs, shape=self.near.shape))
        self.counts += np.bincount(ids, minlength=len(self.counts))

    def vectors(self, width: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The tokens that are used often enough [tokens], and their vectors [tokens, width].

        Each has length 1, and zeros at its end where there are fewer tokens than numbers.
        """
        from sklearn.utils.extmath import randomized_svd

        used = np.flatnonzero(self.counts >= _FEWEST)
        rank = min(width, len(used) - 1)
        if rank < 1:
            return used[:0], np.zeros((0, width), np.float32)
        information = _positive_information(self.near[used][:, used])
        left, values, _ = randomized_svd(information, rank, n_iter=3, random_state=0)
        found = np.zeros((len(used), width), np.float32)
        found[:, :rank] = left * np.sqrt(values)
        return used, found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)


def _positive_information(near: "object") -> "object":
    """Pointwise mutual information of the pairs where it is positive."""
    from scipy.sparse import coo_array, csr_array

    pairs = coo_array(near)
    total = pairs.data.sum(dtype=np.float64)
    row = np.asarray(pairs.sum(axis=1)).ravel().astype(np.float64)
    context = row**_SMOOTHING
    context /= context.sum()
    a, b = pairs.coords
    value = np.log(pairs.data / total) - np.log(row[a] / total) - np.log(context[b])
    kept = value > 0
    data = value[kept].astype(np.float32)
    return csr_array((data, (a[kept], b[kept])), shape=pairs.shape)


def placed(
    table: NDArray, new: Iterable[int], used: NDArray[np.int64], vectors: NDArray[np.float32]
) -> NDArray:
    """A table of vectors in which new tokens stand where their neighbours put them.

    What the model knew stays as it is, and so does a new token without a vector. The known tokens
    say how the one space is turned into the other; where fewer of them are used than there are
    dimensions they do not, and the table stays as it is: a made language of
    a few letters learned far worse with such vectors (masked loss 2.8 in place of 0.8).

    Args:
        table: the model's vectors [tokens, width].
        used: the ids of the tokens with vectors [used].
        vectors: those [used, width].
    """
    is_new = np.isin(used, np.fromiter(new, np.int64))
    if not is_new.any() or np.count_nonzero(~is_new) < table.shape[1]:
        return table
    known = table[used[~is_new]].astype(np.float64)
    centre, away = known.mean(axis=0), vectors[~is_new].mean(axis=0)
    own, ours = known - centre, vectors - away
    left, _, right = np.linalg.svd(ours[~is_new].T @ own)
    turned = ours[is_new] @ (left @ right)
    length = np.linalg.norm(own, axis=1).mean() / np.linalg.norm(turned, axis=1).mean()
    moved = table.copy()
    moved[used[is_new]] = (centre + length * turned).astype(table.dtype)
    return moved


def prepare(
    source: ModelSource,
    config: AdaptConfig,
    lacks_words: bool,
    train: Sequence[str],
    held_out: Sequence[str],
    folder: Path,
) -> dict[str, Any]:
    """Chooses the words to add, and writes the model that training starts from.

    The folder gets `words.tsv` and, if there is anything new, `model/`: it `lacks_words` without a
    head for masked words. Words are taken from the files of sentences to train on.

    Returns:
        How many tokens are new, and the `Coverage` of the held-out text before and after.
    """
    text, workers = source.text, config.num_workers
    counts, other = (count_words_of(files, text, workers) for files in (train, held_out))
    chosen = choose_words(counts, text, config.num_new_tokens)
    with open_whole(folder / "words.tsv") as file:
        file.write("token\tcount\tsaving\n")
        file.writelines(f"{one.token}\t{one.count}\t{one.saving}\n" for one in chosen)
    alphabet, tokens = len(set().union(*counts, *other)), [one.token for one in chosen]
    grown = Vocabulary([*text.vocabulary.tokens, *tokens])
    if chosen or lacks_words:
        model = read_portable(str(source.checkpoint), **config.description())
        if chosen:
            model, _ = grow_vocabulary(model, tokens)
        near = count_neighbours(model, train)
        known = {*text.vocabulary.tokens}
        new = [n for n, one in enumerate(model.text.vocabulary.tokens) if one not in known]
        model = with_placed_tokens(model, new, near)
        if lacks_words:
            model = with_head(model, near.counts, config.seed)
        write_portable(model, folder / "model", "hugging_face")
    return {
        "new_tokens": len(chosen),
        "before": vars(Coverage.of(other, text.vocabulary, alphabet)),
        "after": vars(Coverage.of(other, grown, alphabet)),
    }


def count_neighbours(model: PortableModel, sentences: Sequence[str]) -> Neighbours:
    """The neighbours of a model's tokens in files of sentences, of much text in its beginning."""
    near, tokenizer = Neighbours(model.config.vocab_size), PlainTokenizer(model.text)
    for lines in _blocks(sentences):
        block = tokenizer.encode_lines(lines)
        near.add(block.ids, block.offsets)
        if near.counts.sum() >= _MOST_TOKENS:
            break
    return near


def with_placed_tokens(model: PortableModel, new: Sequence[int], near: Neighbours) -> PortableModel:
    """The model with vectors of their neighbours for its new tokens, as far as they have one."""
    if not new:
        return model
    used, vectors = near.vectors(model.config.hidden_size)
    table = placed(model.weights[_TABLE], new, used, vectors)
    return dataclasses.replace(model, weights={**model.weights, _TABLE: table})


def with_head(model: PortableModel, counts: NDArray[np.int64], seed: int) -> PortableModel:
    """The model with a head for masked words that guesses by the frequencies of tokens.

    Its transformation is random, by the seed; `counts` are how often each token is used
    [vocabulary].
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
