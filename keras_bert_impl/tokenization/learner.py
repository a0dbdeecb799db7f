"""Learning a WordPiece vocabulary from counted words, with the byte-pair trainer of `tokenizers`.

The trainer joins, again and again, the two neighboring tokens that occur together most often. It
reads text, not counts, and gives numbers to characters in the order of a hash table, which decides
ties; both is taken care of here, so that the same counts always give the same vocabulary.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.options import REQUIRED, Options, option
from keras_bert_impl.tokenization.reference import MAX_CHARACTERS_PER_WORD, split_tokens
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, SPECIAL_TOKENS, UNK, Vocabulary

_CHARACTERS_AT_ONCE = 100_000
_MOST_OCCURRENCES = 200_000_000
_WORDS_IN_REPORT = 200_000
_LONGEST_TOKEN = 64  # characters, of four bytes at most: a vocabulary's tokens have up to 256


@dataclass(frozen=True)
class LearnerOptions(Options):
    """The size and kind of a vocabulary to learn."""

    vocab_size: int = option(REQUIRED, "How many tokens the vocabulary gets in all.", at_least=6)
    min_frequency: int = option(
        2, "How often two tokens must occur side by side to be joined.", at_least=1
    )
    limit_alphabet: int = option(
        1000,
        "How many different characters are kept, the most frequent ones; words with another one "
        "do not count and become [UNK]. Korean whose accents are kept needs about 2500, Chinese "
        "about 6000; the report says what the limit costs.",
        at_least=1,
    )
    num_unused: int = option(
        0, "How many entries [unused0], [unused1], ... to reserve after [PAD].", at_least=0
    )
    special_tokens: tuple[str, ...] = option(
        (), "Further tokens that get an id, after [PAD], [UNK], [CLS], [SEP], [MASK]."
    )


class Learned(NamedTuple):
    """A vocabulary that was learned, and how."""

    vocabulary: Vocabulary
    pairs: list[tuple[str, str]]


def learn_tokens(counts: Mapping[str, int], options: LearnerOptions) -> Learned:
    """Learns a vocabulary.

    Example:
        >>> learned = learn_tokens({"hug": 10, "hugs": 5, "pug": 5}, LearnerOptions(14))
        >>> learned.vocabulary.tokens[5:]
        ('g', 'h', 'p', 's', 'u', '##g', '##s', '##u', '##ug')
    """
    learned = learn_most_tokens(counts, options)
    if len(learned.vocabulary) != options.vocab_size:
        characters = len(ranked_characters(counts))
        dropped = characters > options.limit_alphabet
        wider = f", raise `limit_alphabet` (the text has {characters})" if dropped else ""
        raise UserError(
            f"`vocab_size={options.vocab_size}` cannot be reached: the text gives "
            f"{len(learned.vocabulary)} tokens; ask for fewer, lower `min_frequency`{wider} or "
            "give more text."
        )
    return learned


def learn_most_tokens(counts: Mapping[str, int], options: LearnerOptions) -> Learned:
    """Learns a vocabulary of the size that is asked for, or as large as the text makes it."""
    # A longer word is [UNK] to the tokenizer: no token that it needs would ever be used.
    counts = {word: n for word, n in counts.items() if len(word) <= MAX_CHARACTERS_PER_WORD}
    alphabet = set(ranked_characters(counts)[: options.limit_alphabet])
    counts = {word: n for word, n in counts.items() if alphabet.issuperset(word)}
    fixed = _fixed_tokens(counts, alphabet, options)
    if len(fixed) > options.vocab_size:
        raise UserError(
            f"`vocab_size={options.vocab_size}` is less than the {len(fixed)} special tokens and "
            "characters; raise it or lower `limit_alphabet`."
        )
    tokens, pairs = _train(counts, fixed, options)
    return Learned(Vocabulary(tokens), pairs)


class Coverage(NamedTuple):
    """How well a vocabulary covers text: how many tokens the words that are not [UNK] take."""

    words: int
    tokens_per_word: float
    unknown_share: float
    whole_share: float


def coverage(counts: Mapping[str, int], vocabulary: Vocabulary) -> Coverage:
    """Cuts counted words; the figures but for that of [UNK] are of the 200,000 most frequent ones.

    Example:
        >>> vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "##b"])
        >>> coverage({"a": 2, "ab": 1, "c": 1}, vocabulary)
        Coverage(words=4, tokens_per_word=1.3333333333333333, unknown_share=0.25, whole_share=0.5)
    """
    known = tokens = whole = 0
    frequent = dict(Counter(counts).most_common(_WORDS_IN_REPORT))
    for word, count in frequent.items():
        cut = split_tokens(word, vocabulary)
        if cut != [UNK]:
            known += count
            tokens += count * len(cut)
        whole += count * (cut == [word])
    words = sum(counts.values())
    return Coverage(
        words,
        tokens / max(known, 1),
        _count_unknown(counts, vocabulary) / max(words, 1),
        whole / max(sum(frequent.values()), 1),
    )


def _count_unknown(counts: Mapping[str, int], vocabulary: Vocabulary) -> int:
    """How many words are [UNK]; those whose characters all are tokens are not, and need no look."""
    tokens = vocabulary.tokens
    first = {token for token in tokens if len(token) == 1}
    later = {token[2:] for token in tokens if len(token) == 3 and token.startswith(CONTINUATION)}
    return sum(
        count
        for word, count in counts.items()
        if not (word[0] in first and later.issuperset(word[1:]))
        and split_tokens(word, vocabulary) == [UNK]
    )


def ranked_characters(counts: Mapping[str, int]) -> list[str]:
    """The characters of counted words, the most frequent first."""
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    # Ties by the character: the order in which words were counted must not matter.
    return sorted(characters, key=lambda c: (-characters[c], c))


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
        max_token_length=_LONGEST_TOKEN,
        show_progress=sys.stderr.isatty(),  # elsewhere it writes empty lines
    )
    learner.train_from_iterator(_as_text(counts), trainer)
    model = bounded_loads(learner.to_str())["model"]
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
