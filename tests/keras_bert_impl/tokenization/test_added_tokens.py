"""Added tokens are taken out of a text at every door as Hugging Face's own library does it."""

import pytest
import tensorflow as tf
from tokenizers import AddedToken

from keras_bert_impl.checkpoints.text_files import read_casing
from keras_bert_impl.tokenization.added_tokens import AddedToken as OurToken
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.preprocessor import BertPreprocessor, GraphTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenizer_files import bert_tokenizer

WORDS = ["the", "dog", "##s", "e", "##1", "[", "]", "e1", "x", "##x", "b", "É", "##é"]
ADDED = [
    *(AddedToken(content, normalized=True) for content in ("[E1]", "New York", "東京", "안녕")),
    *(AddedToken(content, normalized=True) for content in ("ab", "abc", "xab", "É$")),
    *(AddedToken(content, normalized=False) for content in ("[É]", "[E1][E1]")),
    AddedToken("<L>", lstrip=True, normalized=False),
    AddedToken("<R>", rstrip=True, normalized=False),
]
TEXTS = [
    *("[E1] the dog", "[é1]x", "[e\u00ad1] [E\u03011]", "[E\x001] \0[E1] dogs", "[E1][E1][E1] x"),
    *("the  <L> dog <R>  dogs", "the <L><R> <L>the", "<l> <L>"),  # blanks belong to them
    *("new\tyork NEW  YORK new york", "New\u3000York", "a東京b 東 京", "abcd xabc"),
    *(
        "안녕 the안녕안 \u110b\u1161\u11ab\u1102\u1167\u11bc \uc544\u11ab\u1102\u1167\u11bc",
        "é$ É$ e$ [é] [É] E\u0301$",
    ),
    *("", " ", "the dogs"),
]
CASINGS = [(True, None), (True, False), (False, None), (False, True)]


def opened(folder, casing):
    """The library's tokenizer, and our settings from its file."""
    judge = bert_tokenizer([*SPECIAL_TOKENS, *WORDS], ADDED, *casing)
    judge.save(str(folder / "tokenizer.json"))
    return judge, read_casing(folder).settings(Vocabulary.load(folder / "tokenizer.json"))


def rows_of(block):
    borders = list(zip(block.offsets, block.offsets[1:], strict=False))
    parts = (block.ids, block.starts, block.ends)
    return [tuple(part[a:b].tolist() for part in parts) for a, b in borders]


@pytest.mark.parametrize("casing", CASINGS)
def test_every_door_takes_them_out_as_the_library_does(tmp_path, casing):
    judge, text = opened(tmp_path, casing)
    found = [judge.encode(line, add_special_tokens=False) for line in TEXTS]
    wanted = [(one.ids, *map(list, zip(*one.offsets, strict=True))) for one in found if one.ids]
    lines = [line for line, one in zip(TEXTS, found, strict=True) if one.ids]
    for tokenizer in (PlainTokenizer(text), Tokenizer(text)):
        assert rows_of(tokenizer.encode_lines_with_spans(lines, "characters")) == wanted
        assert tokenizer.encode_lines(TEXTS).ids.tolist() == [n for one in found for n in one.ids]
    layer = GraphTokenizer(text, with_spans=True)
    graph = tf.function(layer, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    ids, *spans = graph(tf.constant(TEXTS))
    assert ids.to_list() == [one.ids for one in found]
    in_bytes = Tokenizer(text).encode_lines_with_spans(TEXTS)
    assert [one.flat_values.numpy().tolist() for one in spans] == [
        in_bytes.starts.tolist(),
        in_bytes.ends.tolist(),
    ]
    client = client_tokenizer(text, 99, keeps_special_tokens=False)
    client.no_padding()
    assert [client.encode(line, add_special_tokens=False).ids for line in TEXTS] == [
        one.ids for one in found
    ]


def test_a_layer_that_is_made_again_has_them(tmp_path):
    _, text = opened(tmp_path, (True, None))
    layer = BertPreprocessor(text, max_seq_length=8)
    again = BertPreprocessor.from_config(layer.get_config())
    assert again.settings == text
    number = text.vocabulary.id_of("[E1]")
    assert again(["[E1] the"])["input_ids"][0, :4].numpy().tolist() == [2, number, 5, 3]


def test_special_tokens_stay_text_beside_them(tmp_path):
    _, text = opened(tmp_path, (True, None))
    split, keep = (Tokenizer(text, special) for special in ("split", "keep"))
    assert split.tokenize("[CLS] [E1]")[-1] == keep.tokenize("[CLS] [E1]")[-1] == "[E1]"
    assert (len(split.tokenize("[CLS] [E1]")), keep.tokenize("[CLS]")) == (4, ["[CLS]"])


@pytest.mark.parametrize("content", ["\ufe0f", "\u200d", "\u200b", "\u0301"])
def test_a_token_that_is_nothing_in_its_normal_form_is_never_taken_out(content):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS, content])
    added = OurToken(content, len(vocabulary) - 1, normalized=True)
    text = TextSettings(vocabulary, added=(added,))
    plain = TextSettings(vocabulary)
    lines = ["the dogs", f"the{content} dog{content}s", content, ""]
    for kind in (PlainTokenizer, Tokenizer):
        found, wanted = kind(text).encode_lines(lines), kind(plain).encode_lines(lines)
        assert found.ids.tolist() == wanted.ids.tolist()
        assert found.offsets.tolist() == wanted.offsets.tolist()
