"""The rows that a client asks its model with are those of the tokenizer, whatever the texts are."""

import functools
import json
import runpy
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.clients import LABEL, client_program
from keras_bert_impl.serving.exported import write_digests
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.tokenization import OPTIONS, alphabet_vocabulary, trouble_text

openvino = pytest.importorskip("openvino", reason="needs the extra `openvino`")
LENGTH = 40
"""Of rows; that of pairs without [CLS] and both [SEP] is odd, so that one text keeps more."""
ODD = st.one_of(
    trouble_text(),
    st.text(),
    st.sampled_from(["", "\0", "[MASK]", "[mask]", "a[SEP]b", "a" * 19, "a " * 19, "b " * 60]),
)


@functools.cache
def client(texts, options, special_tokens):
    """A client's `answer`, which gives what it asks its model with; and our tokenizer."""
    text = TextSettings(alphabet_vocabulary(), *options)
    folder = Path(tempfile.mkdtemp())
    (folder / "client.py").write_text(client_program("openvino", LABEL, texts=texts))
    client_tokenizer(text, LENGTH, special_tokens == "keep").save(str(folder / "tokenizer.json"))
    values = {"max_seq_length": LENGTH, "pad_id": text.vocabulary.pad_id, "labels": ["one"]}
    (folder / "settings.json").write_text(json.dumps(values))
    for name in ("model.xml", "model.bin"):
        (folder / name).write_text("a model")
    write_digests(folder)
    asked = []

    def model(features):
        asked.append(features)
        return {"logits": np.zeros([len(features["input_ids"]), 1], np.float32)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openvino, "compile_model", lambda *_: model)
        answer = runpy.run_path(str(folder / "client.py"))["answer"]

    def rows(some):
        assert len(answer(some)) == len(some)
        return asked.pop()

    return rows, Tokenizer(text, special_tokens)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    pairs=st.lists(st.tuples(ODD, ODD), min_size=1, max_size=4),
    texts=st.sampled_from([1, 2, None]),
    options=st.sampled_from(OPTIONS),
    special_tokens=st.sampled_from(["split", "keep"]),
)
def test_a_client_asks_with_the_rows_of_the_tokenizer(pairs, texts, options, special_tokens):
    rows, tokenizer = client(texts, options, special_tokens)
    some = [tuple(map(as_text, pair)) for pair in pairs]
    if texts == 1:
        some = [*sum(some, ())]
    found, expected = rows(some), tokenizer(some, max_seq_length=LENGTH)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("wrong", ["\ud800", b"a", 7])
def test_what_is_no_text_is_refused(wrong):
    for texts, some in ((1, ["a", wrong]), (2, [("a", wrong)]), (None, [("a", "b"), ("a", wrong)])):
        rows, _ = client(texts, (True, True), "split")
        with pytest.raises(ValueError, match=r"no text that UTF-8 can hold|on single texts"):
            rows(some)
