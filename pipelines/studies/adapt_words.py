"""The model that training starts from: its vocabulary with the tokens that the text lacks most.

A new token's row is the mean of those of its former tokens. A model without a head for masked words
gets one that guesses by frequency: its bias is the logarithm of how often a token is used. Training
would take hundreds of steps to come there, and the gradients of those steps, the same for every
word, would pull the whole encoder towards one answer.

Tokens are chosen by how many tokens of the text they save. Characters come first, because a word
with one that is no token is [UNK]. All other candidates are those of a WordPiece vocabulary of the
text. Its words are cut with the model's vocabulary and all candidates, which says how often each is
used; the worst are dropped and the words are cut again, until as few are left as are asked for: a
token is worth more once a longer one that held it is gone.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.checkpoints.convert import PortableModel, grow_vocabulary, write_portable
from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.files import open_whole
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.learner import LearnerOptions, learn_most_tokens
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from pipelines.corpora.documents import find_sources
from pipelines.corpora.learn_vocabulary import LearnVocabularyConfig, count_words

_LOOKED_AT = 500_000  # words; what is rarer saves next to nothing
_CANDIDATES = 3  # for each token that may be added
_DROPPED_AT_ONCE = 4  # a round drops one of so many at most


@dataclasses.dataclass(frozen=True)
class NewWord:
    """A token to be added, how often the text uses it, and how many tokens it saves there."""

    token: str
    count: int
    saving: int


class Cut(NamedTuple):
    """How a vocabulary cuts counted words, each [UNK] as one token."""

    tokens_per_word: float  # of words that are not [UNK]
    unknown_share: float
    tokens_per_character: float
    spelled: float  # nats a character to spell [UNK]: the logarithm of the different characters

    @classmethod
    def of(cls, counts: Mapping[str, int], vocabulary: Vocabulary, alphabet: int) -> "Cut":
        """Cuts counted words; the text has so many different characters as `alphabet` says."""
        known = tokens = unknown = unknown_characters = 0
        for word, count in counts.items():
            cut = reference.longest_tokens(word, vocabulary)
            known += count if cut else 0
            tokens += count * len(cut or ())
            unknown += 0 if cut else count
            unknown_characters += 0 if cut else count * len(word)
        characters = max(sum(len(word) * count for word, count in counts.items()), 1)
        return cls(
            tokens / max(known, 1),
            unknown / max(known + unknown, 1),
            (tokens + unknown) / characters,
            unknown_characters * math.log(max(alphabet, 1)) / characters,
        )

    def nats_per_character(self, loss: float) -> float:
        """What it costs to tell words from their context, by the loss of a masked token."""
        return loss * self.tokens_per_character + self.spelled


def seems_decomposed(paragraphs: Sequence[str], text: TextSettings) -> bool:
    """Whether a model cuts text into far fewer tokens once it is composed (NFC)."""

    def cost(lines: Iterable[str]) -> int:
        casing = (text.do_lower_case, text.removes_accents)
        words = (word for line in lines for word in reference.split_words(line, *casing))
        return sum(_cost(word, known) for word in words)

    known = frozenset(text.vocabulary.tokens)
    return cost(map(reference.composed, paragraphs)) < 0.9 * cost(paragraphs)


def choose_words(
    counts: Mapping[str, int],
    text: TextSettings,
    num_new_tokens: int,
    min_count: int = 10,
    min_saving: float = 1e-5,
) -> list[NewWord]:
    """Chooses the tokens to add to a vocabulary, the one that saves most first.

    A token saves, each time that it is used, the tokens that the model's own vocabulary needs for
    the same characters, less one. Characters that it cannot cut count one token each and one more,
    because [UNK] says nothing of them. A token must be used `min_count` times and save a share of
    `min_saving` of the text's tokens.
    """
    if not num_new_tokens:
        return []
    known = frozenset(text.vocabulary.tokens)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    longest = reference.MAX_CHARACTERS_PER_WORD
    words = {word: counts[word] for word in ranked[:_LOOKED_AT] if len(word) <= longest}
    first = _missing_characters(words, known, min_count, (num_new_tokens + 1) // 2)
    candidates = _candidates(words, min_count, _CANDIDATES * num_new_tokens)
    new, most = {*first, *candidates} - known, num_new_tokens - len(first)
    floor = max(1, min_saving * sum(words[word] * _cost(word, known) for word in words))
    while True:
        used = _uses(words, known.union(new))
        found = [NewWord(one, used[one], used[one] * (_cost(one, known) - 1)) for one in new]
        others = [one for one in found if one.token not in first]
        useless = {one for one in others if one.count < min_count or one.saving < floor}
        others.sort(key=lambda one: (one not in useless, one.saving, one.token))
        excess = max(len(others) - most, len(useless))
        if excess <= 0:
            return sorted(found, key=lambda one: (-one.saving, one.token))
        dropped = others[: min(excess, -(-len(others) // _DROPPED_AT_ONCE))]
        new -= {one.token for one in dropped}


def _missing_characters(
    words: Mapping[str, int], known: Container[str], min_count: int, most: int
) -> frozenset[str]:
    """The characters that make words [UNK], the most frequent ones."""
    found = Counter[str]()
    for word, count in words.items():
        if reference.longest_tokens(word, known) is None:
            for token in (word[0], *(f"{CONTINUATION}{character}" for character in word[1:])):
                found[token] += count
    often = [token for token in found if token not in known and found[token] >= min_count]
    return frozenset(sorted(often, key=lambda token: (-found[token], token))[:most])


def _candidates(words: Mapping[str, int], min_count: int, most: int) -> Iterable[str]:
    """The tokens of a vocabulary of the text, at most so many besides characters."""
    characters = Counter[str]()
    for word, count in words.items():
        characters.update(dict.fromkeys(word, count))
    often = sum(uses >= min_count for uses in characters.values())
    if not often:
        return ()
    size = len(SPECIAL_TOKENS) + 2 * often + most
    asked = LearnerOptions(size, min_frequency=min_count, limit_alphabet=often)
    return learn_most_tokens(words, asked).vocabulary.tokens[len(SPECIAL_TOKENS) :]


def _cost(token: str, known: Container[str]) -> int:
    """How many tokens a vocabulary needs for the characters of a token."""
    characters = token.removeprefix(CONTINUATION)
    cut = reference.longest_tokens(characters, known, continues=characters != token)
    return len(cut) if cut else len(characters) + 1


def prepare(
    source: ModelSource,
    sentences: Path,
    folder: Path,
    read: Callable[[], PortableModel],
    num_new_tokens: int,
    lacks_words: bool,
    seed: int,
    num_workers: int | None = None,
) -> dict[str, Any]:
    """Chooses the words to add, and writes the model that training starts from.

    The folder gets `words.tsv` and, if there is anything new, `model/`: it `lacks_words` without a
    head for masked words. Words are taken from all files in `sentences` but the last one, of which
    the `Cut` before and after is given.
    """
    text, (*train, held_out) = source.text, sorted(map(str, sentences.glob("*.txt")))
    counts, other = (_count_words_of(files, text, num_workers) for files in (train, [held_out]))
    chosen = choose_words(counts, text, num_new_tokens)
    with open_whole(folder / "words.tsv") as file:
        file.write("token\tcount\tsaving\n")
        file.writelines(f"{one.token}\t{one.count}\t{one.saving}\n" for one in chosen)
    alphabet, tokens = len(set().union(*counts, *other)), [one.token for one in chosen]
    if chosen or lacks_words:
        model = read()
        model = grow_vocabulary(model, tokens)[0] if chosen else model
        model = _with_head(model, counts, seed) if lacks_words else model
        write_portable(model, folder / "model", "hugging_face")
    grown = Vocabulary([*text.vocabulary.tokens, *tokens])
    before, after = (Cut.of(other, one, alphabet) for one in (text.vocabulary, grown))
    return {"new_tokens": len(chosen), "before": before, "after": after}


def _count_words_of(
    files: Sequence[str], text: TextSettings, num_workers: int | None
) -> Counter[str]:
    """How often each word of files of sentences occurs, cased as a model's text is."""
    asked = LearnVocabularyConfig(
        input_file=files,
        vocab_file="",
        do_lower_case=text.do_lower_case,
        strip_accents=text.strip_accents,
        num_workers=num_workers,
    )
    return count_words(asked, find_sources(files, "text"))[0]


def _with_head(model: PortableModel, counts: Mapping[str, int], seed: int) -> PortableModel:
    """The model with a head for masked words that guesses by the frequencies of its tokens."""
    uses = _uses(counts, model.text.vocabulary)
    often = np.full(model.config.vocab_size, 0.5)  # a token that the text lacks is rare
    often[: len(model.text.vocabulary)] += [uses[one] for one in model.text.vocabulary.tokens]
    width, draw = model.config.hidden_size, np.random.default_rng(seed)
    head = {
        "transform/kernel": draw.normal(0, model.config.initializer_range, (width, width)),
        "transform/bias": np.zeros(width),
        "layer_norm/gamma": np.ones(width),
        "layer_norm/beta": np.zeros(width),
        "output_bias": np.log(often / often.sum()),
    }
    new = {f"masked_lm/{name}": value.astype(np.float32) for name, value in head.items()}
    return dataclasses.replace(model, weights={**model.weights, **new})


def _uses(counts: Mapping[str, int], tokens: Container[str]) -> Counter[str]:
    """How often each token is used where counted words are cut."""
    used = Counter[str]()
    for word, count in counts.items():
        for token in reference.longest_tokens(word, tokens) or ():
            used[token] += count
    return used
