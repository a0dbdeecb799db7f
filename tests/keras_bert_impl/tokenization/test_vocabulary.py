import hashlib

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import (
    SPECIAL_TOKENS,
    Vocabulary,
    contradiction_of_casing,
)

PIECES = [*SPECIAL_TOKENS, "word", "##s"]


def file_with(tmp_path, content):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    return path


def test_ids_are_line_numbers():
    vocabulary = Vocabulary(PIECES)
    assert [vocabulary.id_of(piece) for piece in PIECES] == [0, 1, 2, 3, 4, 5, 6]
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id) == (0, 1, 2)
    assert (vocabulary.sep_id, vocabulary.mask_id, len(vocabulary)) == (3, 4, 7)


def test_a_piece_that_is_not_there_is_unknown():
    assert Vocabulary(PIECES).id_of("other") == 1


def test_the_hash_is_that_of_the_written_file(tmp_path):
    vocabulary = Vocabulary(PIECES)
    vocabulary.write(tmp_path / "vocab.txt")
    content = (tmp_path / "vocab.txt").read_bytes()
    assert content == ("\n".join(PIECES) + "\n").encode()
    assert vocabulary.sha256 == hashlib.sha256(content).hexdigest()
    assert Vocabulary.load(tmp_path / "vocab.txt") == vocabulary


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(PIECES).encode(),
        ("\ufeff" + "\n".join(PIECES) + "\n").encode(),
        ("\r\n".join(PIECES) + "\r\n").encode(),
        "".join(f"{piece} \n" for piece in PIECES).encode(),
    ],
    ids=["no newline at the end", "BOM", "Windows line ends", "white space around pieces"],
)
def test_ways_of_writing_the_same_vocabulary(tmp_path, content):
    assert Vocabulary.load(file_with(tmp_path, content)).pieces == tuple(PIECES)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\n", "has no pieces"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n", r"has no \[MASK\] piece; add a line"),
        ("\n".join([*PIECES, "word"]).encode(), "'word' stands on lines 6 and 8; make the first"),
        ("\n".join([*PIECES, "", "x"]).encode(), r"line 8 is empty; write .* as \[unused8\]"),
        ("\n".join(PIECES).encode() + b"\n\xe9t\xe9\n", "line 8 is not UTF-8"),
        ("\n".join(PIECES).encode("utf-16"), "line 1 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(tmp_path, content, sentence):
    with pytest.raises(UserError, match=rf"vocab\.txt: .*{sentence}"):
        Vocabulary.load(file_with(tmp_path, content))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.txt: no such file"):
        Vocabulary.load(tmp_path / "none.txt")


CASED = Vocabulary([*SPECIAL_TOKENS, *(f"Word{n}" for n in range(300)), *"abc"])
KOREAN = Vocabulary([*SPECIAL_TOKENS, *(chr(0xAC00 + n) for n in range(100))])
UNCASED = Vocabulary([*SPECIAL_TOKENS, *(f"word{n}" for n in range(2000))])


@pytest.mark.parametrize(
    ("vocabulary", "do_lower_case", "says"),
    [
        (CASED, True, "do_lower_case is on, but 300 of 308 pieces"),
        (CASED, False, None),
        (UNCASED, True, None),
        (UNCASED, False, "do_lower_case is off, but none of the 2005 pieces"),
        (Vocabulary(PIECES), False, None),
        (KOREAN, True, "do_lower_case is on, but 100 of 105 pieces"),
        (KOREAN, False, None),
    ],
)
def test_casing_that_contradicts_the_vocabulary_is_said(vocabulary, do_lower_case, says):
    sentence = contradiction_of_casing(vocabulary, do_lower_case)
    assert sentence is None if says is None else sentence.startswith(says)


@pytest.mark.data
@pytest.mark.parametrize("name", ["uncased", "cased", "multilingual-cased"])
def test_the_published_vocabularies_go_with_their_casing(data_folder, name):
    vocabulary = Vocabulary.load(data_folder / "vocab" / f"bert-base-{name}-vocab.txt")
    assert contradiction_of_casing(vocabulary, do_lower_case=name == "uncased") is None
    assert contradiction_of_casing(vocabulary, do_lower_case=name != "uncased") is not None


def test_syllables_stay_whole_where_accents_are_kept():
    assert contradiction_of_casing(KOREAN, do_lower_case=True, strip_accents=False) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_unusual_white_space_keeps_its_id(tmp_path, end):
    pieces = [*SPECIAL_TOKENS, "\u2027", "\u2028", "\u2030", "一"]
    vocabulary = Vocabulary.load(file_with(tmp_path, "".join(p + end for p in pieces).encode()))
    assert vocabulary.id_of("一") == 8
    tokens = Tokenizer(vocabulary).encode("‰一\u2028一")
    assert tokens == [7, 8, 8]
    vocabulary.write(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == "".join(p + "\n" for p in pieces).encode()
