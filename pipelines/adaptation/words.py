"""The tokens that a vocabulary lacks most: those that save the most tokens of a text.

Characters come first, because a word with one that is no token is [UNK]. All other candidates are
the tokens that a WordPiece vocabulary of the text has. The text's words are cut with the model's
vocabulary and all candidates together, which says how often each is used; the worst are dropped and
the words that they were in are cut again, until no more are left than are asked for. In rounds,
because a token is worth more once a longer one that held it is gone.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from keras_bert_impl.tokenization.learner import LearnerOptions, coverage, learn_most_tokens
from keras_bert_impl.tokenization.reference import (
    MAX_CHARACTERS_PER_WORD,
    longest_tokens,
    split_tokens,
    split_words,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, SPECIAL_TOKENS, UNK, Vocabulary
from pipelines.corpora.documents import find_sources
from pipelines.corpora.learn_vocabulary import LearnVocabularyConfig, count_words

_LOOKED_AT = 500_000  # words; what is rarer saves next to nothing
_CANDIDATES = 3  # for each token that may be added
_DROPPED_AT_ONCE = 4  # a round drops one of so many at most


@dataclass(frozen=True)
class NewWord:
    """A token to be added, how often the text uses it, and how many tokens it saves there."""

    token: str
    count: int
    saving: int


@dataclass(frozen=True)
class Coverage:
    """How a vocabulary cuts the held-out text.

    `tokens_per_word` is of words that are not [UNK], `unknown_length` the mean number of characters
    of those that are; the whole text has so many different characters as `alphabet` says.
    """

    words: int
    tokens_per_word: float
    unknown_share: float
    unknown_length: float
    alphabet: int

    @classmethod
    def of(cls, counts: Mapping[str, int], vocabulary: Vocabulary, alphabet: int) -> "Coverage":
        """How a vocabulary cuts counted words."""
        found = coverage(counts, vocabulary)
        unknown = {word: n for word, n in counts.items() if split_tokens(word, vocabulary) == [UNK]}
        characters = sum(len(word) * n for word, n in unknown.items())
        length = characters / max(sum(unknown.values()), 1)
        return cls(found.words, found.tokens_per_word, found.unknown_share, length, alphabet)


def count_words_of(
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
    because [UNK] says nothing of them.

    A token must be used `min_count` times and save a share of `min_saving` of the text's tokens.

    Example:
        >>> letters = [*"hug", *(f"##{letter}" for letter in "hugs")]
        >>> text = TextSettings(Vocabulary([*SPECIAL_TOKENS, *letters]), do_lower_case=True)
        >>> choose_words({"hug": 50, "hugs": 20}, text, 1)
        [NewWord(token='hug', count=70, saving=140)]
    """
    if not num_new_tokens:
        return []
    known = frozenset(text.vocabulary.tokens)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    words = {
        word: counts[word] for word in ranked[:_LOOKED_AT] if len(word) <= MAX_CHARACTERS_PER_WORD
    }
    first = _missing_characters(words, known, min_count, (num_new_tokens + 1) // 2)
    candidates = [
        token
        for token in _candidates(words, min_count, _CANDIDATES * num_new_tokens)
        if token not in known and token not in first and _is_reachable(token, text)
    ]
    new, most = {*first, *candidates}, num_new_tokens - len(first)
    floor = max(1, min_saving * sum(words[word] * _cost(word, known) for word in words))
    while True:
        found = _worth(words, known, new)
        others = [one for one in found if one.token not in first]
        useless = {one for one in others if one.count < min_count or one.saving < floor}
        others.sort(key=lambda one: (one not in useless, one.saving, one.token))
        excess = max(len(others) - most, len(useless))
        if excess <= 0:
            return sorted(found, key=lambda one: (-one.saving, one.token))
        dropped = others[: min(excess, -(-len(others) // _DROPPED_AT_ONCE))]
        new -= {one.token for one in dropped}


def _worth(words: Mapping[str, int], known: frozenset[str], new: Collection[str]) -> list[NewWord]:
    """What new tokens are worth where the words are cut with them and the known ones."""
    tokens, used = known.union(new), Counter[str]()
    for word, count in words.items():
        for token in longest_tokens(word, tokens) or ():
            used[token] += count
    return [NewWord(one, used[one], used[one] * (_cost(one, known) - 1)) for one in new]


def _missing_characters(
    words: Mapping[str, int], known: Container[str], min_count: int, most: int
) -> frozenset[str]:
    """The characters that make words [UNK], the most frequent ones."""
    found: Counter[str] = Counter()
    for word, count in words.items():
        if longest_tokens(word, known) is None:
            for token in _characters(word):
                if token not in known:
                    found[token] += count
    ranked = sorted(found, key=lambda token: (-found[token], token))
    return frozenset([token for token in ranked if found[token] >= min_count][:most])


def _characters(word: str) -> Iterator[str]:
    yield word[0]
    yield from (f"{CONTINUATION}{character}" for character in word[1:])


def _candidates(words: Mapping[str, int], min_count: int, most: int) -> Iterable[str]:
    """The tokens of a vocabulary of the text, at most so many besides characters."""
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    often = sum(uses >= min_count for uses in characters.values())
    if not often:
        return ()
    size = len(SPECIAL_TOKENS) + 2 * often + most
    asked = LearnerOptions(size, min_frequency=min_count, limit_alphabet=often)
    return learn_most_tokens(words, asked).vocabulary.tokens[len(SPECIAL_TOKENS) :]


def _is_reachable(token: str, text: TextSettings) -> bool:
    """Whether the tokenizer would ever give this token: what it splits and changes it never does.

    A continuation stands within a word, whose characters were not changed on their way here.
    """
    return token.startswith(CONTINUATION) or (
        split_words(token, text.do_lower_case, text.strip_accents) == [token]
    )


def _cost(token: str, known: Container[str]) -> int:
    """How many tokens a vocabulary needs for the characters of a token."""
    continues = token.startswith(CONTINUATION)
    characters = token.removeprefix(CONTINUATION)
    cut = longest_tokens(characters, known, continues=continues)
    return len(cut) if cut else len(characters) + 1
