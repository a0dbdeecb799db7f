"""Questions about passages with all kinds of blanks and scripts, and a vocabulary for them."""

import itertools

import numpy as np

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.tasks.questions.files import Passage, Question

WORDS = [
    *("rain", "Regen", "naïve", "e\u0301te\u0301", "(1895–1943),", "x\u200by", "🙂", "U.S."),
    *("비가", "내렸다.", "서울특별시는", "日本語", "it's", "\x00", "\ufffd", "rain\u200b\u00ad"),
]
BLANKS = [" ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u202f", "\u3000 ", "\n\n"]
CHARACTERS = sorted(
    {c for word in WORDS for c in word + word.lower() if c > " "} - {"\u200b", "\u00ad"}
)
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "rain", *CHARACTERS, *(f"##{c}" for c in CHARACTERS)])


def make_questions(count, seed=0):
    """Questions of 0 to 8 words about passages of 0 to 59 words."""
    draw = np.random.default_rng(seed)

    def text(words):
        pairs = zip(draw.choice(WORDS, words), draw.choice(BLANKS, words), strict=True)
        return "".join(itertools.chain.from_iterable(pairs))

    return [
        Question(f"q{number}", text(draw.integers(9)), Passage("Made", text(draw.integers(60))))
        for number in range(count)
    ]
