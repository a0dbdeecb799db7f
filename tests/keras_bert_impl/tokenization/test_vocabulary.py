import hashlib
import os
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenizer_files import write_tokenizer_json

TOKENS = [*SPECIAL_TOKENS, "word", "##s"]


def write(folder, token):
    """A `tokenizer.json` with one added token."""
    added = [{"content": token, "id": 7, "normalized": True}]
    return write_tokenizer_json(folder, TOKENS, {"added_tokens": added})


def test_the_tokens_of_a_tokenizer_json_are_read(tmp_path):
    assert Vocabulary.load(write(tmp_path, "stent")) == Vocabulary([*TOKENS, "stent"])


def file_with(tmp_path, content):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    return path


def test_ids_are_line_numbers():
    vocabulary = Vocabulary(TOKENS)
    assert [vocabulary.id_of(token) for token in TOKENS] == [0, 1, 2, 3, 4, 5, 6]
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id) == (0, 1, 2)
    assert (vocabulary.sep_id, vocabulary.mask_id, len(vocabulary)) == (3, 4, 7)


def test_the_hash_is_that_of_the_written_file(tmp_path):
    vocabulary = Vocabulary(TOKENS)
    vocabulary.write(tmp_path / "vocab.txt")
    content = (tmp_path / "vocab.txt").read_bytes()
    assert content == ("\n".join(TOKENS) + "\n").encode()
    assert vocabulary.sha256 == hashlib.sha256(content).hexdigest()
    assert Vocabulary.load(tmp_path / "vocab.txt") == vocabulary


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(TOKENS).encode(),
        ("\ufeff" + "\n".join(TOKENS) + "\n").encode(),
        ("\r\n".join(TOKENS) + "\r\n").encode(),
        "".join(f"{token} \n" for token in TOKENS).encode(),
    ],
    ids=["no newline at the end", "BOM", "Windows line ends", "white space around tokens"],
)
def test_ways_of_writing_the_same_vocabulary(tmp_path, content):
    assert Vocabulary.load(file_with(tmp_path, content)).tokens == tuple(TOKENS)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\n", "has no tokens"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n", r"has no \[MASK\] token; add a line"),
        ("\n".join([*TOKENS, "word"]).encode(), "token 6, 'word', stands again as token 8; write"),
        ("\n".join([*TOKENS, "", "x"]).encode(), r"token 8, '', is empty, .* as \[unused8\]"),
        ("\n".join(TOKENS).encode() + b"\n\xe9t\xe9\n", "line 8 is not UTF-8"),
        ("\n".join(TOKENS).encode("utf-16"), "line 1 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(tmp_path, content, sentence):
    with pytest.raises(UserError, match=rf"vocab\.txt: .*{sentence}"):
        Vocabulary.load(file_with(tmp_path, content))


@pytest.mark.parametrize(
    ("token", "fault"),
    [
        ("two\nlines", r"'two\\nlines', is empty, or has a line's end in it"),
        (" blank", "or blanks around it"),
        ("\r", "or blanks around it"),
        ("한" * 100, "한', has more than 256 bytes"),
        ("§" * 100, "§', has more than 256 bytes"),
    ],
)
def test_a_token_that_no_file_or_kernel_can_hold_is_refused_when_it_is_loaded(
    tmp_path, token, fault
):
    write(tmp_path, token)
    with pytest.raises(
        UserError, match=rf"tokenizer\.json: token 8, .*{fault}.*\[unused8\]"
    ) as said:
        Vocabulary.load(tmp_path / "tokenizer.json")
    assert len(str(said.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "token", ["\0", "a\0b", "##\0", "\x015", "c b", "\u2028", "\ufffd", "x" * 300, "##", "İ"]
)
@pytest.mark.parametrize("lower", [True, False])
def test_a_token_that_no_text_has_is_no_obstacle(token, lower):
    tokens = [*SPECIAL_TOKENS, "a", "b", token]
    settings = TextSettings(Vocabulary(tokens), lower)
    lines = ["a\0b", token, f"a {token} b", "5", "c b"]
    expected = PlainTokenizer(settings).encode_lines(lines).ids.tolist()
    assert Tokenizer(settings).encode_lines(lines).ids.tolist() == expected
    known = [reference.tokenize(line, {*tokens}, lower) for line in lines]
    assert expected == [settings.vocabulary.id_of(one) for line in known for one in line]


def test_a_file_without_end_is_refused(tmp_path):
    endless = file_with(tmp_path, b"word\n" * 9)
    os.truncate(endless, (64 << 20) + 1)
    with pytest.raises(UserError, match="has more than 64 MiB, which no vocabulary needs"):
        Vocabulary.load(endless)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_unusual_white_space_keeps_its_id(tmp_path, end):
    tokens = [*SPECIAL_TOKENS, "\u2027", "\u2028", "\u2030", "一"]
    vocabulary = Vocabulary.load(file_with(tmp_path, "".join(p + end for p in tokens).encode()))
    assert vocabulary.id_of("一") == 8
    ids = Tokenizer(TextSettings(vocabulary)).encode("‰一\u2028一")
    assert ids == [7, 8, 8]
    vocabulary.write(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == "".join(p + "\n" for p in tokens).encode()


@pytest.mark.parametrize("tokens", ["vocab.txt", Path("vocab.txt"), [1, 2]])
def test_what_is_no_list_of_tokens_is_refused(tokens):
    with pytest.raises(UserError, match=r"is no list of tokens; use Vocabulary\.load"):
        Vocabulary(tokens)
