"""What a command asks: which answerer, and the instances of lines, columns and options."""

import gzip
from types import SimpleNamespace

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Input
from pipelines.answering.asked_texts import asked_texts, chosen_answerer, is_stream
from pipelines.answering.config import PredictConfig


def answerer(signature, kind, *inputs):
    return SimpleNamespace(signature=signature, kind=kind, inputs=inputs)


TEXT = answerer("text", "label", Input("text"))
PAIR = answerer("text_pair", "label", Input("text_a"), Input("text_b"))
CHOICE = answerer("text", "choice", Input("context"), Input("endings", is_list=True))


def chosen(answerers, **options):
    model = SimpleNamespace(answerers={one.signature: one for one in answerers})
    return chosen_answerer(model, PredictConfig(model="m", **options))


def instances(answerer, **options):
    return [(one.instance, one.where) for one in asked_texts(config(**options), answerer)]


def config(**options):
    return PredictConfig(model="m", **options)


def test_a_text_or_a_pair_finds_its_signature():
    assert chosen([PAIR, TEXT], text=["a"]) is TEXT
    assert chosen([TEXT, PAIR], text=["a"], text_pair=["b"]) is PAIR
    assert chosen([PAIR, TEXT], input_file="x") is PAIR  # as in training
    assert chosen([PAIR, TEXT], input_file="x", text_column="t") is TEXT
    assert chosen([TEXT, PAIR], input_file="x", signature="text_pair") is PAIR


def test_options_are_instances():
    asked = instances(TEXT, text=["a", "b"])
    assert asked == [({"text": "a"}, "`text` 1"), ({"text": "b"}, "`text` 2")]
    assert instances(PAIR, text=["a"], text_pair=["b"])[0][0] == {"text_a": "a", "text_b": "b"}
    assert instances(CHOICE, context="a", ending=["b", "c"])[0][0] == {
        "context": "a",
        "endings": ["b", "c"],
    }


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("text_a,text_b", {}),
        ("sentence1,sentence2", {}),
        ("x,y", {"text_column": "x", "text_pair_column": "y"}),
    ],
)
def test_pairs_stand_in_columns(tmp_path, header, options):
    path = tmp_path / "pairs.csv"
    path.write_text(f'{header}\n"a, b",c\n')
    asked = instances(PAIR, input_file=str(path), **options)
    assert asked == [({"text_a": "a, b", "text_b": "c"}, f"{path}: line 2")]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("sentence1,sentence2", PAIR),
        ("premise,hypothesis", PAIR),
        ("text,text_pair", PAIR),
        ("text_a,text_b", PAIR),
        ("text,comment", TEXT),
        ("text,question,answer", TEXT),
        ("review,stars", TEXT),
    ],
)
def test_the_columns_say_whether_a_table_has_texts_or_pairs(tmp_path, header, expected):
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n{header}\n")
    assert chosen([TEXT, PAIR], input_file=str(path)) is expected
    ((asked, _),) = instances(expected, input_file=str(path))
    assert list(asked.values()) == header.split(",")[: len(expected.inputs)]


@pytest.mark.parametrize("header", ["sent1,sent2,ending0,ending1", "context,x,endings0,endings1"])
def test_endings_are_asked_as_they_are_learned(tmp_path, header):
    path = tmp_path / "table.csv"
    path.write_text(f"{header},label\nIt rains.,We,stay,go,1\n")
    (asked,) = asked_texts(config(input_file=str(path)), CHOICE)
    words = ["We stay", "We go"] if "sent2" in header else ["stay", "go"]
    assert asked.instance == {"context": "It rains.", "endings": words}
    assert asked.columns == ({} if "sent2" in header else {"x": "We"}) | {"label": "1"}


def test_a_first_line_of_texts_is_not_taken_for_a_header(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("great film\nbad film\n")
    with pytest.raises(
        UserError, match=r"not clear which column is the text; name it .* from 1 if"
    ):
        instances(TEXT, input_file=str(path))
    found = instances(TEXT, input_file=str(path), text_column="1")
    assert [one["text"] for one, _ in found] == ["great film", "bad film"]


def test_a_table_of_pairs_is_not_read_as_single_texts(tmp_path):
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2\na,b\n")
    with pytest.raises(UserError, match="has sentence1 and sentence2, but this model is asked wi"):
        instances(TEXT, input_file=str(tmp_path / "pairs.csv"))


def test_a_file_whose_name_begins_with_a_dash_is_no_pipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-q.gz").write_bytes(gzip.compress(b"one\n"))
    assert instances(TEXT, input_file="-q.gz") == [({"text": "one"}, "-q.gz: line 1")]
    assert is_stream("-")


def test_columns_that_are_not_there_or_no_text_are_told(tmp_path):
    (tmp_path / "twice.csv").write_text("text,label,text\na,b,c\n")
    with pytest.raises(UserError, match="has the column 'text' 2 times; rename all but one"):
        instances(TEXT, input_file=str(tmp_path / "twice.csv"))
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": 5}\n')
    with pytest.raises(UserError, match="line 1: the column 'text' is a number, not text"):
        instances(TEXT, input_file=str(path))
    with pytest.raises(UserError, match="'body'"):
        instances(TEXT, input_file=str(path), text_column="body")
    with pytest.raises(UserError, match="line 1 has no text in the column 'sent1' or 'context'"):
        instances(CHOICE, input_file=str(path))
    with pytest.raises(UserError, match="has no columns context and endings; name them so"):
        instances(CHOICE, input_file=str(path), text_column="text")
    with pytest.raises(UserError, match="`text_pair_column=text`: has a second text, but"):
        instances(TEXT, input_file=str(path), text_pair_column="text")
