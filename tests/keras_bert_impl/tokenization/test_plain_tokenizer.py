import functools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization import plain_tokenizer
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import (
    OPTIONS,
    alphabet_vocabulary,
    by_line,
    expected_ids,
    stable_code_points,
    trouble_bytes,
    trouble_text,
)

ALPHABET = alphabet_vocabulary()


@pytest.fixture(scope="module")
def tokenizers():
    return {options: PlainTokenizer(TextSettings(ALPHABET, *options)) for options in OPTIONS}


@given(st.lists(st.one_of(trouble_text(), trouble_bytes()), max_size=3), st.sampled_from(OPTIONS))
def test_any_text_is_cut_as_by_the_reference(tokenizers, lines, options):
    found = by_line(tokenizers[options].encode_lines(lines)) if lines else []
    assert found == expected_ids(lines, ALPHABET, *options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(True, True), (False, False)])
def test_every_code_point(tokenizers, options):
    """A sample beyond the first blocks: the table that decides is the kernels', too."""
    numbers = stable_code_points()
    numbers = np.concatenate([numbers[:0x3400], numbers[0x3400::97]])
    for pattern in ("a{}b c", "A{}Σ"):
        lines = [pattern.format(chr(number)) for number in numbers]
        found = by_line(tokenizers[options].encode_lines(lines))
        assert found == expected_ids(lines, ALPHABET, *options)


@pytest.mark.parametrize(
    "line",
    [
        "ΑΣ ΟΔΟΣ. Σ ΣΑ Α:Σ ΑΣ\u0301 ΑΣ:Α",
        "\u302e\u302f \U0001d165\U0001d16d\u302e \U0001d16d\u0301\U0001d165a",
        "\U0001d15f\u302e\u0316 각\u302e\u0301\u302f",
        "a" * 200 + " " + "a" * 201 + " " + "각" * 100,
        "[MASK] ##a a\ud800b \udfff",
        "  a \u2028b\u00a0c \x85d\te  ",
    ],
)
@pytest.mark.parametrize("options", OPTIONS)
def test_trouble_is_cut_as_by_the_reference(tokenizers, line, options):
    lines = [line, "", "a"]
    expected = expected_ids(lines, ALPHABET, *options)
    assert by_line(tokenizers[options].encode_lines(lines)) == expected


def test_what_is_forgotten_is_learned_again(monkeypatch):
    monkeypatch.setattr(plain_tokenizer, "_REMEMBERED_PARTS", 3)
    tokenizer = PlainTokenizer(TextSettings(Vocabulary([*SPECIAL_TOKENS, *"abc"])))
    for _ in range(3):
        block = tokenizer.encode_lines(["a b c", "c a", "d", "b" * 150])
        assert block.ids.tolist() == [5, 6, 7, 7, 5, 1, 1]
        assert block.offsets.tolist() == [0, 3, 5, 6, 7]


def test_it_needs_no_tensorflow():
    code = (
        "import sys; from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer\n"
        "from keras_bert_impl.tokenization.text_settings import TextSettings\n"
        "from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary\n"
        "PlainTokenizer(TextSettings(Vocabulary(SPECIAL_TOKENS))).encode_lines(['a'])\n"
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_cut_that_is_interrupted_leaves_nothing_behind(monkeypatch):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "."]
    tokenizer = PlainTokenizer(TextSettings(Vocabulary(tokens)))
    of = tokenizer._word_ids.of

    def interrupted(word):
        if word == ".":
            raise KeyboardInterrupt
        return of(word)

    with monkeypatch.context() as patched:
        patched.setattr(tokenizer._word_ids, "of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tokenizer.encode_lines(["a.dog"])
    assert tokenizer.encode_lines(["dog"]).ids.tolist() == [6]
    assert tokenizer.encode_lines(["a.dog"]).ids.tolist() == [5, 7, 6]


@settings(max_examples=60, deadline=None)
@given(st.lists(trouble_text(), min_size=1, max_size=3), st.sampled_from(OPTIONS))
def test_tokens_stand_where_the_tokenizer_finds_them(lines, options):
    found = plain(options).encode_lines_with_spans(lines)
    expected = kernels_of(options).encode_lines_with_spans(lines, unit="characters")
    for name, array in found._asdict().items():
        assert array.tolist() == getattr(expected, name).tolist(), name


@functools.cache
def plain(options, special_tokens="split"):
    return PlainTokenizer(TextSettings(ALPHABET, *options), special_tokens)


@functools.cache
def kernels_of(options, special_tokens="split"):
    return Tokenizer(TextSettings(ALPHABET, *options), special_tokens)
