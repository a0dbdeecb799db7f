"""Learning a WordPiece vocabulary from counted words, with the byte-pair trainer of `tokenizers`.

The trainer joins, again and again, the two neighboring tokens that occur together most often. It
reads text, not counts, and gives numbers to characters in the order of a hash table, which decides
ties; both is taken care of here, so that the same counts always give the same vocabulary.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.tokenization.reference import MAX_CHARACTERS_PER_WORD, split_tokens
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary

_CHARACTERS_AT_ONCE = 100_000
_MOST_OCCURRENCES = 200_000_000
_WORDS_IN_REPORT = 200_000


@dataclass(frozen=True)
class LearnerOptions:
    """The size and kind of a vocabulary to learn.

    Raises:
        UserError: a value out of range.
    """

    vocab_size: int = option(REQUIRED, "How many tokens the vocabulary gets in all.", at_least=6)
    min_frequency: int = option(
        2, "How often two tokens must occur side by side to be joined.", at_least=1
    )
    limit_alphabet: int = option(
        1000,
        "How many different characters are kept, the most frequent ones; words with another one "
        "do not count. Chinese and Korean (without stripping accents) need more, about 6000.",
        at_least=1,
    )
    num_unused: int = option(
        0, "How many entries [unused0], [unused1], ... to reserve after [PAD].", at_least=0
    )
    special_tokens: tuple[str, ...] = option(
        (), "Further tokens that get an id, after [PAD], [UNK], [CLS], [SEP], [MASK]."
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Merge:
    """A step of the learner: two tokens that become one, and how often they stood side by side."""

    left: str
    right: str
    count: int


class Learned(NamedTuple):
    """A vocabulary that was learned, and how.

    Attributes:
        vocabulary: the tokens: special ones, characters, then joined ones as they were learned.
        pairs: the two tokens that each joined one was made from, in that order.
    """

    vocabulary: Vocabulary
    pairs: list[tuple[str, str]]


def learn_tokens(counts: Mapping[str, int], options: LearnerOptions) -> Learned:
    """Learns a vocabulary.

    Args:
        counts: how often each word occurs.
        options: the size and kind of the vocabulary.

    Raises:
        UserError: the words do not give `vocab_size` tokens, or their characters alone are more.

    Example:
        >>> learned = learn_tokens({"hug": 10, "hugs": 5, "pug": 5}, LearnerOptions(14))
        >>> learned.vocabulary.tokens[5:]
        ('g', 'h', 'p', 's', 'u', '##g', '##s', '##u', '##ug')
    """
    # A longer word is [UNK] to the tokenizer: no token that it needs would ever be used.
    counts = {word: n for word, n in counts.items() if len(word) <= MAX_CHARACTERS_PER_WORD}
    alphabet = _alphabet(counts, options.limit_alphabet)
    counts = {word: n for word, n in counts.items() if alphabet.issuperset(word)}
    fixed = _fixed_tokens(counts, alphabet, options)
    if len(fixed) > options.vocab_size:
        raise UserError(
            f"vocab_size={options.vocab_size} is less than the {len(fixed)} special tokens and "
            "characters; raise it or lower limit_alphabet."
        )
    tokens, pairs = _train(counts, fixed, options)
    if len(tokens) != options.vocab_size:
        raise UserError(
            f"vocab_size={options.vocab_size} cannot be reached: the text gives {len(tokens)} "
            "tokens; ask for fewer, lower min_frequency or give more text."
        )
    return Learned(Vocabulary(tokens), pairs)


def first_merges(counts: Mapping[str, int], learned: Learned, number: int) -> list[Merge]:
    """Does the first merges again, by the book, to count them.

    Example:
        >>> counts = {"hug": 10, "hugs": 5, "pug": 5}
        >>> first_merges(counts, learn_tokens(counts, LearnerOptions(15)), 2)
        [Merge(left='##u', right='##g', count=20), Merge(left='h', right='##ug', count=15)]
    """
    known = {token.removeprefix(CONTINUATION) for token in learned.vocabulary.tokens}
    words = {word: _characters(word) for word in counts if known.issuperset(word)}
    merges = []
    for left, right in learned.pairs[:number]:
        joined = left + right.removeprefix(CONTINUATION)
        count = 0
        text = joined.removeprefix(CONTINUATION)
        for word, tokens in words.items():
            if text in word:
                words[word] = _join(tokens, left, right)
                count += counts[word] * (len(tokens) - len(words[word]))
        merges.append(Merge(left, right, count))
    return merges


class Coverage(NamedTuple):
    """How well a vocabulary covers text.

    Attributes:
        words: the number of words looked at.
        tokens_per_word: into how many tokens a word is cut on average, [UNK] counting as one.
        unknown_share: the share of words that are [UNK].
        whole_share: the share of words that are one token.
    """

    words: int
    tokens_per_word: float
    unknown_share: float
    whole_share: float


def coverage(counts: Mapping[str, int], vocabulary: Vocabulary) -> Coverage:
    """Cuts counted words; of very many, the most frequent ones.

    Example:
        >>> vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "##b"])
        >>> coverage({"a": 2, "ab": 1, "c": 1}, vocabulary)
        Coverage(words=4, tokens_per_word=1.25, unknown_share=0.25, whole_share=0.5)
    """
    words = tokens = unknown = whole = 0
    for word, count in Counter(counts).most_common(_WORDS_IN_REPORT):
        cut = split_tokens(word, vocabulary)
        words += count
        tokens += count * len(cut)
        unknown += count * (cut == ["[UNK]"])
        whole += count * (cut == [word])
    total = max(words, 1)
    return Coverage(words, tokens / total, unknown / total, whole / total)


def _alphabet(counts: Mapping[str, int], limit: int) -> set[str]:
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    # Ties by the character: the order in which words were counted must not matter.
    return set(sorted(characters, key=lambda c: (-characters[c], c))[:limit])


def _fixed_tokens(counts: Iterable[str], alphabet: set[str], options: LearnerOptions) -> list[str]:
    """The tokens that are not learned, in the order of their ids."""
    # In the order of google's vocabularies, in which [PAD] has the id 0.
    unused = [f"[unused{number}]" for number in range(options.num_unused)]
    continuing = {character for word in counts for character in word[1:]} & alphabet
    tokens = [
        *(SPECIAL_TOKENS[0], *unused, *SPECIAL_TOKENS[1:], *options.special_tokens),
        *sorted(alphabet),
        *(f"{CONTINUATION}{character}" for character in sorted(continuing)),
    ]
    return list(dict.fromkeys(tokens))


def _train(
    counts: Mapping[str, int], fixed: list[str], options: LearnerOptions
) -> tuple[list[str], list[tuple[str, str]]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    learner = Tokenizer(models.BPE(continuing_subword_prefix=CONTINUATION))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocab_size,
        min_frequency=options.min_frequency,
        # As "special tokens" the characters get fixed ids, and ids decide ties.
        special_tokens=fixed,
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    learner.train_from_iterator(_as_text(counts), trainer)
    model = json.loads(learner.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return tokens, [(left, right) for left, right in model["merges"]]


def _as_text(counts: Mapping[str, int]) -> Iterator[str]:
    """Text in which each word occurs as often as it was counted; in proportion, if that is much."""
    # The trainer's time grows with the text: beyond that it reads a sample in proportion.
    scale = max(1.0, sum(counts.values()) / _MOST_OCCURRENCES)
    for word in sorted(counts):
        left = max(1, round(counts[word] / scale))
        at_once = _CHARACTERS_AT_ONCE // (len(word) + 1) + 1
        while left > 0:
            yield f"{word} " * min(left, at_once)
            left -= at_once


def _characters(word: str) -> list[str]:
    return [word[:1], *(f"{CONTINUATION}{character}" for character in word[1:])]


def _join(tokens: list[str], left: str, right: str) -> list[str]:
    joined: list[str] = []
    for token in tokens:
        if token == right and joined and joined[-1] == left:
            joined[-1] = left + right.removeprefix(CONTINUATION)
        else:
            joined.append(token)
    return joined
