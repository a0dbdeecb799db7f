"""Adding words to a trained model without losing what it knows."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence

import numpy as np

from keras_bert_impl.checkpoints.convert import (
    ConvertConfig,
    PortableModel,
    read_input,
    write_output,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import text_lines
from keras_bert_impl.options import option
from keras_bert_impl.tokenization.reference import longest_tokens
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, UNK, Vocabulary

_LOGGER = logging.getLogger(__name__)

_TABLE, _BIAS = "embeddings/token_embeddings", "masked_lm/output_bias"


@dataclasses.dataclass(frozen=True)
class NewToken:
    """A token that was added.

    Attributes:
        token: the new token.
        id: its id.
        made_from: the old tokens whose rows' mean it starts as.
    """

    token: str
    id: int
    made_from: tuple[str, ...]


def grow_vocabulary(
    model: PortableModel, words: Sequence[str], fill_unused: bool = True
) -> tuple[PortableModel, list[NewToken]]:
    """Adds words; a new row is the mean of the rows of the tokens that the word was cut into.

    Words that the vocabulary has, or that come twice, are skipped and counted in the log: a whole
    vocabulary that was learned on other text may be given.

    Args:
        model: the model; it is not changed.
        words: the new words as the tokenizer sees them (lower-cased for an uncased model); a word
            that starts with "##" continues another.
        fill_unused: whether `[unused…]` entries are used up before the tables are enlarged. Their
            ids then mean words, the sizes stay, and the model stays compatible in shape.

    Returns:
        The grown model, and what was added.
    """
    tokens = list(model.text.vocabulary.tokens)
    known = {token: number for number, token in enumerate(tokens)}
    words = _new_words(words, known)
    # Rows between the vocabulary's end and the table's end have no token: they are free as well.
    size = model.config.vocab_size
    unused = [n for n, token in enumerate(tokens) if token.startswith("[unused")]
    free = (unused if fill_unused else []) + list(range(len(tokens), size))
    positions = (free + list(range(size, size + len(words))))[: len(words)]
    new = []
    for word, position in zip(words, positions, strict=True):
        made_from = _cut(word, known)
        new.append(NewToken(word, position, made_from))
        tokens += [""] * (position + 1 - len(tokens))
        tokens[position] = word
    grown_size = max(size, len(tokens))
    weights = dict(model.weights)
    for name in (_TABLE, _BIAS):
        if name in weights:
            weights[name] = _grow(weights[name], new, known, grown_size)
    grown = dataclasses.replace(
        model,
        weights=weights,
        config=model.config.replace(vocab_size=grown_size),
        text=dataclasses.replace(model.text, vocabulary=Vocabulary(tokens)),
    )
    return grown, new


def _cut(word: str, known: dict[str, int]) -> tuple[str, ...]:
    """The old tokens of a new word, which may begin with "##"; [UNK] where it cannot be cut."""
    continues = word.startswith(CONTINUATION)
    tokens = longest_tokens(word.removeprefix(CONTINUATION), known, continues=continues)
    return tuple(tokens or (UNK,))


def _grow(rows: np.ndarray, new: list[NewToken], known: dict[str, int], size: int) -> np.ndarray:
    """Enlarges a table [tokens, ...] to `size` rows and fills the new tokens' rows."""
    grown = np.zeros((size, *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    for entry in new:
        sources = rows[[known[token] for token in entry.made_from]].astype(np.float64)
        grown[entry.id] = sources.mean(axis=0).astype(rows.dtype)
    return grown


def _new_words(words: Sequence[str], known: Mapping[str, int]) -> list[str]:
    """The words that are not in the vocabulary, each once, in their order."""
    for number, word in enumerate(words, start=1):
        if not word.removeprefix("##") or any(character.isspace() for character in word):
            raise UserError(
                f"new word {number}: {shown(word)} is no single word; give one word a line."
            )
    different = list(dict.fromkeys(words))
    new = [word for word in different if word not in known]
    if not new:
        what = "every one of them is in the vocabulary" if words else "there are none"
        raise UserError(f"`words` has none to add: {what}; give at least one that is new.")
    there, twice = len(different) - len(new), len(words) - len(different)
    if there or twice:
        _LOGGER.info(
            "of %d words %d are new; skipped: %d that are in the vocabulary, %d given twice",
            *(len(words), len(new), there, twice),
        )
    return new


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowConfig(ConvertConfig):
    """Which words to add to which checkpoint; what is read and written as in `ConvertConfig`."""

    words: Sequence[str] = option((), "The new words, separated by commas.")
    words_file: str | None = option(None, "A UTF-8 file with more new words, one a line.")
    fill_unused: bool = option(True, "Use up [unused…] entries before the tables are enlarged.")


def grow_checkpoint(config: GrowConfig) -> list[NewToken]:
    """Adds the words and writes the grown checkpoint.

    Returns:
        The new tokens with their ids and what their rows start as.
    """
    model = read_input(config)
    words = [*config.words, *_read_words(config.words_file)]
    grown, new = grow_vocabulary(model, words, config.fill_unused)
    _check_reachable(grown.text, [one.token for one in new])
    write_output(grown, config)
    return new


def _read_words(path: str | None) -> list[str]:
    if path is None:
        return []
    return [line.strip() for line in text_lines(path) if line.strip()]


def _check_reachable(text: TextSettings, words: Sequence[str]) -> None:
    """Sees that the tokenizer gives each new word as the one token that it now is."""
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

    tokenizer = Tokenizer(text)
    for word in words:
        whole = word.startswith("##") or tokenizer.tokenize(word) == [word]
        if not whole:
            cut = " ".join(tokenizer.tokenize(word))
            raise UserError(
                f"new word {shown(word)}: the tokenizer would never give it (it cuts it into "
                f"{shown(cut)}); give words without spaces and punctuation, in lower case for an "
                "uncased model."
            )
