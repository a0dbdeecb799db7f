"""WordPiece in plain Python: a word is cut, from the left, into the longest tokens there are.

The reference, the tokenizer without TensorFlow, the vocabulary learner and the growing of
vocabularies all cut words here; the fast tokenizers do it in tensorflow-text's kernels.
"""

from collections.abc import Callable, Container
from typing import TypeVar

from keras_bert_impl.tokenization.vocabulary import CONTINUATION

T = TypeVar("T")


def longest_tokens(
    word: str,
    vocabulary: Container[str],
    *,
    continues: bool = False,
    longest: int | None = None,
) -> list[str] | None:
    """Cuts a word.

    Args:
        word: a word without white space.
        vocabulary: the tokens.
        continues: whether the word continues another one, so that its first token has "##" too.
        longest: characters of the vocabulary's longest token, where that is known: saves time.

    Returns:
        The tokens; None where the word cannot be cut to its end.

    Example:
        >>> longest_tokens("unaffable", {"un", "##aff", "##able", "##a"})
        ['un', '##aff', '##able']
        >>> longest_tokens("happy", {"happy", "##ha", "##ppy"}, continues=True)
        ['##ha', '##ppy']
        >>> longest_tokens("unaffordable", {"un", "##aff", "##able"}) is None
        True
    """
    return longest_matches(
        word,
        lambda token: token if token in vocabulary else None,
        continues=continues,
        longest=longest,
    )


def longest_matches(
    word: str,
    find: Callable[[str], T | None],
    *,
    continues: bool = False,
    longest: int | None = None,
) -> list[T] | None:
    """Does what `longest_tokens` does, and gives what `find` knows of each token, such as its id.

    Example:
        >>> longest_matches("unaffable", {"un": 1, "##aff": 2, "##able": 3}.get)
        [1, 2, 3]
    """
    found: list[T] = []
    prefix = CONTINUATION if continues else ""
    start, most = 0, longest or len(word)
    while start < len(word):
        for end in range(min(len(word), start + most), start, -1):
            match = find(prefix + word[start:end])
            if match is not None:
                break
        else:
            return None
        found.append(match)
        start, prefix = end, CONTINUATION
    return found
