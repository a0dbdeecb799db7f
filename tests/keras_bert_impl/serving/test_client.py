"""The client beside an export: what it takes, the rows that it asks with, what it refuses."""

import ast
import functools
import io
import json
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving import client as program
from keras_bert_impl.serving.exported import DIGESTS_FILE, write_digests
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.tokenization import OPTIONS, alphabet_vocabulary, trouble_text

openvino = pytest.importorskip("openvino", reason="needs the extra `openvino`")
LENGTH = 40
"""Of rows; that of pairs without [CLS] and both [SEP] is odd, so that one text keeps more."""
ODD = st.one_of(
    trouble_text(),
    st.text(),
    st.sampled_from(["", "\0", "[MASK]", "[mask]", "a[SEP]b", "a" * 19, "a " * 19, "b " * 60]),
)
ONE, TWO = ["", "text"], ["", "text_a", "text_b"]
LOGITS = [[1.0, 2.0]]


def client_of(text, keeps=False, logits=LOGITS, name="logits", **said):
    """A client beside a model that gives the same numbers for each row, and what is asked of it."""
    folder = Path(tempfile.mkdtemp())
    (folder / "client.py").write_bytes(Path(program.__file__).read_bytes())
    client_tokenizer(text, LENGTH, keeps).save(str(folder / "tokenizer.json"))
    values = {"max_seq_length": LENGTH, "pad_id": text.vocabulary.pad_id, "labels": ["no", "yes"]}
    values |= {"answers": "label", "asks": [ONE, TWO], "long_text": "truncate", "threshold": 0.5}
    (folder / "settings.json").write_text(json.dumps({**values, **said}))
    for model in ("model.xml", "model.bin"):
        (folder / model).write_text("a model")
    write_digests(folder)
    asked = []

    def model(features):
        asked.append(features)
        array = np.array(logits * len(features["input_ids"]), np.float32)
        return {name: array}

    names = runpy.run_path(str(folder / "client.py"))
    names["RUNTIMES"]["model.xml"] = lambda _: model
    return names, asked


def answered(some, **said):
    names, _ = client_of(TextSettings(WORD_VOCABULARY), **said)
    return names["answer"](some)


@functools.cache
def client_and_tokenizer(options, special_tokens):
    text = TextSettings(alphabet_vocabulary(), *options)
    return *client_of(text, special_tokens == "keep"), Tokenizer(text, special_tokens)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(ODD, ODD), min_size=1, max_size=4),
    single=st.booleans(),
    options=st.sampled_from(OPTIONS[:2]),
    special_tokens=st.sampled_from(["split", "keep"]),
)
def test_a_client_asks_with_the_rows_of_the_tokenizer(pairs, single, options, special_tokens):
    names, asked, tokenizer = client_and_tokenizer(options, special_tokens)
    some = [tuple(map(as_text, pair)) for pair in pairs]
    some = [*sum(some, ())] if single else some
    assert len(names["answer"](some)) == len(some)
    found, expected = asked.pop(), tokenizer(some, max_seq_length=LENGTH)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


LOG3 = [[0.0, float(np.log(3))]]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"answers": "label", "logits": LOG3}, ("yes", [0.25, 0.75])),
        ({"answers": "labels", "logits": [[-80.0, 0.0]]}, (["yes"], [0.0, 0.5])),
        ({"answers": "score", "logits": [[2.5]]}, 2.5),
        ({"answers": "embedding", "name": "embedding", "logits": [[1.0, 0.5]]}, [1.0, 0.5]),
    ],
)
def test_numbers_become_answers(said, expected):
    (one,) = answered(["a dog"], **said)
    if isinstance(expected, tuple):
        assert one[0] == expected[0]
        one, expected = one[1], expected[1]
    assert one == pytest.approx(expected)


@pytest.mark.parametrize("one", ["a dog", ("a dog", "the cat")])
def test_a_text_or_a_pair_alone_gets_its_one_answer(one):
    assert answered(one) == answered([one])[0]


def test_other_outputs_come_by_their_names():
    (one,) = answered(["a dog"], answers="outputs")
    assert one["logits"].tolist() == LOGITS[0]


@pytest.mark.parametrize(
    ("some", "said", "sentence"),
    [
        (["a", ("a", "b")], {"asks": [ONE]}, "is asked with text; give these"),
        (["a"], {"asks": [TWO]}, "is asked with text_a and text_b; give these"),
        ([], {}, "is asked with text or text_a and text_b; give these"),
        ([("a", ["b"])], {"asks": [TWO], "endings": 2}, "trained on 2 endings; give as many"),
        (["the dog " * 30], {"long_text": "windows"}, "longer than a row; only the SavedModel"),
        (["a", "\ud800"], {}, "no text that UTF-8 can hold"),
        (["a", b"a"], {}, "no text that UTF-8 can hold"),
        ([("a", "b"), ("a", 7)], {}, "no text that UTF-8 can hold"),
        ({"text_a": "a", "text_b": "b"}, {}, "no text that UTF-8 can hold"),
        (["a"], {"logits": [[1.0, float("nan")]]}, "not finite, so it has no answer"),
        (["a"], {"logits": [[1.0, float("inf")]]}, "not finite, so it has no answer"),
    ],
)
def test_what_it_cannot_answer_is_one_sentence(some, said, sentence):
    with pytest.raises(ValueError, match=sentence):
        answered(some, **said)


def test_the_words_of_a_command_line_are_texts_a_pair_or_a_context_with_endings(monkeypatch):
    text = TextSettings(WORD_VOCABULARY)
    for said, asked in (
        ({"asks": [ONE, TWO]}, ["a", "b", "c"]),
        ({"asks": [TWO]}, [["a", "b", "c"]]),
        ({"asks": [TWO], "endings": 2}, [("a", ["b", "c"])]),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\tc\n\n")))
        names, _ = client_of(text, **said)
        assert list(names["of_command"](["a", "b", "c"])) == [("", asked)]
        line, empty = names["of_command"](["-"])
        assert line == ("line 1: ", asked if "endings" in said else [["a", "b", "c"]])
        assert empty == ("line 2: ", [("", [])] if "endings" in said else [[""]])


def run(monkeypatch, *words, lines=b"", missing=("no package", None), **said):
    """What a command of the client's ends with."""
    names, _ = client_of(TextSettings(WORD_VOCABULARY), **said)
    path = names["HERE"] / "client.py"
    model = "lambda features: {'logits': np.array([[0, 9]] * len(features['input_ids']), 'f4')}"
    program = path.read_text().replace("RUNTIMES[model](HERE / model)", model)
    path.write_text(program.replace("import json", "import json\nimport numpy as np"))
    (path.parent / DIGESTS_FILE).unlink()
    write_digests(path.parent)
    monkeypatch.setitem(sys.modules, *missing)
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code
    return 0


def test_who_asks_nothing_or_for_help_reads_how_it_is_asked(monkeypatch, capsys):
    assert run(monkeypatch) == 2
    missing = capsys.readouterr()
    for words in (["-h"], ["the dog", "--help"]):
        assert run(monkeypatch, *words) == 0
        assert capsys.readouterr() == (missing.err, missing.out)
    assert missing.err.startswith("python client.py 'a text'")


@pytest.mark.parametrize("word", ["--input_file=my lines.txt", "--", "--- a text"])
def test_what_looks_like_an_option_is_no_text(monkeypatch, capsys, word):
    assert run(monkeypatch, "the dog", word).startswith(f"{word} is no option; --help says")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ({"asks": [ONE]}, "the dog\n\n--a\tcat"),
        ({"asks": [ONE, TWO]}, "\ufeffthe dog\r\nthe dog\ta cat\n"),
    ],
)
def test_each_line_of_standard_input_is_answered_by_a_line(monkeypatch, capsys, said, lines):
    assert run(monkeypatch, "-", lines=lines.encode(), **said) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(lines.splitlines())


def test_a_line_without_the_fields_of_a_pair_is_told(monkeypatch):
    told = run(monkeypatch, "-", lines=b"a\tb\na\n", asks=[TWO])
    assert told.startswith("line 2: This model is asked with text_a and text_b")
    assert run(monkeypatch, "-", lines=b"a\n\xff\n", asks=[ONE]).startswith("line 2: ")


def test_a_missing_package_is_one_sentence_with_all_that_is_needed(monkeypatch):
    assert run(monkeypatch, "the dog", missing=("tokenizers", None)) == (
        "The package tokenizers is not installed; pip install numpy tokenizers openvino"
    )


def test_it_needs_nothing_of_this_package():
    tree = ast.parse(Path(program.__file__).read_text())
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    standard = {"collections.abc", "functools", "hashlib", "json", "pathlib", "sys", "typing"}
    runtimes = {"ai_edge_litert.interpreter", "onnxruntime", "openvino", "tensorflow"}
    assert imported == {*standard, *runtimes, "numpy", "tokenizers", "tensorflow_text"}
