"""The words of a text that become [UNK]: their share, and the reason where it is large.

A word is what BERT's rules split a text into before WordPiece cuts it: punctuation marks and
Chinese characters are words of their own. What becomes [UNK] is always a whole word, and a token
begins a word exactly where it does not begin with "##", so that ids alone give the share.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, option
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import NFC, TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, UNK, Vocabulary

_LOGGER = logging.getLogger(__name__)

WARNED_ABOVE, REFUSED_ABOVE = 0.05, 0.5
_FEW_WORDS = 50  # of so few an unusual name is a large share
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 1000, 200_000
_EXAMPLES, _SHOWN_CHARACTERS = 3, 20


@dataclass(frozen=True)
class WordCount:
    """How many words a text has, and how many of them become [UNK].

    Example:
        >>> count = WordCount(words=30, unknown=3) + WordCount(words=10, unknown=1)
        >>> count.share, str(count)
        (0.1, '10.0 % of the words')
    """

    words: int = 0
    unknown: int = 0

    @property
    def share(self) -> float:
        """The share of words that become [UNK]; 0 of no words."""
        return self.unknown / max(self.words, 1)

    @property
    def is_large(self) -> bool:
        """Whether the share calls for a warning; among few words only the larger half does."""
        return self.share > (REFUSED_ABOVE if self.words < _FEW_WORDS else WARNED_ABOVE)

    @property
    def is_refused(self) -> bool:
        """Whether long work with such a text is refused."""
        return self.share > REFUSED_ABOVE and self.words >= _FEW_WORDS

    def __add__(self, other: "WordCount") -> "WordCount":
        return WordCount(self.words + other.words, self.unknown + other.unknown)

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % of the words"


class WordCounter:
    """Counts the words of ids, and those that are [UNK]."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._unk_id = vocabulary.unk_id
        self._begins_word = np.array(
            [not token.startswith(CONTINUATION) for token in vocabulary.tokens]
        )
        framing = [vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id]
        self._begins_word[framing] = False

    def count(self, ids: NDArray[np.integer]) -> WordCount:
        """Counts the words of ids, of any shape; [PAD], [CLS], [SEP] and [MASK] are none."""
        words = np.count_nonzero(self._begins_word[ids])
        return WordCount(int(words), int(np.count_nonzero(ids == self._unk_id)))


@dataclass(frozen=True, kw_only=True)
class UnknownWords:
    """The option of every job that tokenizes a text for long work."""

    allow_unknown_words: bool = option(
        False,
        "Go on though more than half of the words of a sample of the text become [UNK]; without it "
        "such a text is refused, because the vocabulary does not fit it.",
        resume=FREE,
    )

    def check(self, texts: Iterable[str | bytes], settings: TextSettings, name: str) -> WordCount:
        """Counts the words of a sample before long work; see `check_words`."""
        return check_words(texts, settings, name, may_refuse=not self.allow_unknown_words)


def check_words(
    texts: Iterable[str | bytes], settings: TextSettings, name: str, *, may_refuse: bool
) -> WordCount:
    """Counts the words of a sample of texts, and says it where the vocabulary does not fit them.

    Above 5 % of [UNK] a warning is logged; above half of at least 50 words the text is refused.
    """
    sample = list(_sample(texts))
    count = _count(sample, settings)
    if not count.is_large:
        return count
    message = f"{name}: {_describe(sample, settings, count)}"
    if may_refuse and count.is_refused:
        raise UserError(f"{message}; or give `allow_unknown_words=True` to go on all the same.")
    _LOGGER.warning("%s.", message)
    return count


def _sample(texts: Iterable[str | bytes]) -> Iterator[str]:
    room = _SAMPLE_CHARACTERS
    for text in islice(texts, _SAMPLE_LINES):
        yield reference.as_text(text)[:room]
        room -= len(text)
        if room <= 0:
            return


def _count(lines: Sequence[str], settings: TextSettings) -> WordCount:
    ids = PlainTokenizer(settings).encode_lines(lines).ids
    return WordCounter(settings.vocabulary).count(ids)


def _describe(lines: Sequence[str], settings: TextSettings, count: WordCount) -> str:
    words = _unknown_words(lines, settings)
    frequent = [reference.as_name(word) for word, _ in words.most_common(_EXAMPLES)]
    return (
        f"{count} of a sample become [UNK] with {settings.vocabulary.name} "
        f"({', '.join(frequent)}): {_reason(lines, settings, count)}"
    )


def _unknown_words(lines: Iterable[str], settings: TextSettings) -> Counter[str]:
    """The words that become [UNK]; of long ones the beginning, which says enough."""
    casing = settings.do_lower_case, settings.removes_accents
    found = Counter(word for line in lines for word in reference.split_words(line, *casing))
    unknown = Counter[str]()
    for word, count in found.items():
        if reference.split_tokens(word, settings.vocabulary, settings.longest_word) == [UNK]:
            unknown[word[:_SHOWN_CHARACTERS]] += count
    return unknown


# Training and embedding take it from the model, other tools have a flag.
_KEEPS_ACCENTS = "`strip_accents=False`, which a model has in its tokenizer_config.json"


def _reason(lines: Sequence[str], settings: TextSettings, count: WordCount) -> str:
    """The likely reason: what would make the share less than half, or else another language."""
    lower = not settings.do_lower_case
    tried = {
        f"`do_lower_case={lower}`": replace(settings, do_lower_case=lower),
        _KEEPS_ACCENTS: replace(settings, strip_accents=False),
        "`unicode_form=nfc`": replace(settings, unicode_form=NFC),
    }
    shares = {remedy: _count(lines, other).share for remedy, other in tried.items()}
    remedy = min(shares, key=shares.__getitem__)  # of equal ones the first, the simplest
    if shares[remedy] < count.share / 2:
        return f"the vocabulary seems to be made for text in another form; give {remedy}"
    return (
        "the vocabulary seems to be of another language than the text, or to lack many of its "
        "characters; take a model, or learn a vocabulary, for the text"
    )
