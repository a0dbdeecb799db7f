"""Tables of texts: which columns are what, and which kind of data they make."""

import json

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.tables.files import open_table
from pipelines.tasks.vectors.files import (
    CLASSES,
    MARGINS,
    PAIRS,
    SCORES,
    TRIPLES,
    choose_vector_columns,
    read_vector_data,
)


@pytest.fixture
def read(tmp_path):
    def read(lines, prompts=("", "", ""), query=None, document=None, negatives=(), label=None):
        path = tmp_path / "texts.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        file = open_table(str(path))
        columns = choose_vector_columns(file, query, document, negatives, label)
        return read_vector_data(file, columns, prompts)

    return read


def rows_of(data):
    return [[data.texts[number][1] for number in row] for row in data.rows]


QUESTION = {"question": "q", "answer": "a"}


@pytest.mark.parametrize(
    ("lines", "kind", "rows", "labels"),
    [
        ([QUESTION], PAIRS, [["q", "a"]], None),
        ([{"질문": "q", "답변": "a"}], PAIRS, [["q", "a"]], None),
        ([{**QUESTION, "negative_1": "n", "negative_2": "m"}], TRIPLES, [[*"qanm"]], None),
        ([{"anchor": "q", "positive": "a", "negatives": ["n", "m"]}], TRIPLES, [[*"qanm"]], None),
        ([{"sentence1": "q", "sentence2": "a", "score": 2.5}], SCORES, [["q", "a"]], [2.5]),
        ([{"text_a": "q", "text_b": "a", "label": "1"}], SCORES, [["q", "a"]], [1.0]),
        ([{**QUESTION, "negative": "n", "margin": 3}], MARGINS, [[*"qan"]], [3.0]),
        ([{**QUESTION, "negatives": ["n", "m"], "margin": [3, 4]}], MARGINS, [[*"qanm"]], [[3, 4]]),
        (
            [{"query": "q", "positive": ["a", "b"], "negative": "n"}],
            TRIPLES,
            [[*"qan"], [*"qbn"]],
            None,
        ),
        ([{**QUESTION, "label": "TRUE"}], SCORES, [["q", "a"]], [1.0]),
        ([{**QUESTION, "label": False}], SCORES, [["q", "a"]], [0.0]),
    ],
)
def test_the_columns_say_the_kind(read, lines, kind, rows, labels):
    data = read(lines)
    assert (data.kind, rows_of(data)) == (kind, rows)
    assert labels is None if data.labels is None else data.labels.tolist() == labels


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["entailment", "not_entailment"], "line 2 has 'not_entailment', but the column 'label'"),
        ([1, "N/A"], "line 2 has 'N/A'"),
        (["0.5", "0,5"], "line 2 has '0,5'"),
        ([0, "yes"], "line 2 has 'yes'"),
        ([1, " "], "line 2 has no number and no class"),
        ([1, float("nan")], "line 2 has nan"),
    ],
)
def test_a_label_that_is_no_number_is_told_and_not_left_aside(read, labels, told):
    with pytest.raises(UserError, match=told):
        read([{**QUESTION, "label": label} for label in labels])


def test_margins_are_as_many_in_each_row(read):
    lines = [{**QUESTION, "negatives": ["n", "m"], "margin": some} for some in ([1, 2], [1])]
    with pytest.raises(UserError, match=r"line 2 has \[1\], but .* as many numbers a row"):
        read(lines)


@pytest.mark.parametrize(
    ("columns", "query", "kind", "row"),
    [
        (("query", "document", "label"), "query", SCORES, "ab"),
        (("id", "document", "query", "label"), "query", SCORES, "cb"),
        (("ask", "answer"), "ask", PAIRS, "ab"),
        (("question1", "question2", "is_duplicate"), "question1", SCORES, "ab"),
    ],
)
def test_of_a_query_alone_the_document_is_found(read, columns, query, kind, row):
    values = ["a", "b", "c", "d"][: len(columns)]
    line = {**dict(zip(columns, values, strict=True)), columns[-1]: "1" if kind == SCORES else "b"}
    data = read([line], query=query)
    assert (data.kind, rows_of(data)) == (kind, [[*row]])


def test_texts_of_classes_may_stand_beside_documents_that_are_left_out(read):
    lines = [{**QUESTION, "question": text, "label": text > "b"} for text in "abcd"]
    assert read(lines, query="question", document="").kind == CLASSES


@pytest.mark.parametrize("names", [("sentence1", "sentence2"), ("query", "passage")])
def test_named_texts_have_the_label_of_a_plain_name_whatever_else_is_there(read, names):
    line = {**dict(zip(names, "ab", strict=True)), "score": 0.5, "topic": "x", "rating": 3}
    data = read([line], query=names[0], document=names[1])
    assert (data.kind, data.labels.tolist()) == (SCORES, [0.5])


def test_texts_of_a_named_class_take_no_document(read):
    lines = [{**QUESTION, "question": text, "intent": f"class {text > 'b'}"} for text in "abcd"]
    assert read(lines, query="question", label="intent").kind == CLASSES
    lines = [{"sentence1": text, "sentence2": "x", "label": text > "b"} for text in "abcd"]
    assert read(lines, document="").kind == CLASSES


def test_a_label_may_be_left_out(read):
    assert read([{**QUESTION, "label": "shipping"}], label="").kind == PAIRS
    rows = [{"sentence1": "a", "sentence2": "b", "score": 1}]
    assert read(rows, label="").kind == PAIRS


def test_inference_makes_triples_of_a_premise_what_follows_and_what_contradicts(read):
    pairs = [
        *(("p", "e", "entailment"), ("p", "c", "Contradiction"), ("p", "f", "entailment")),
        *(("p", "n", "neutral"), ("r", "e", "entailment"), ("s", "t", "-")),
    ]
    data = read([{"premise": a, "hypothesis": b, "gold_label": c} for a, b, c in pairs])
    assert data.kind == TRIPLES
    assert rows_of(data) == [[*"pec"], [*"pfc"]]


def test_texts_of_classes_stand_in_pairs_of_one_class(read):
    texts = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "alone"}
    data = read([{"text": text, "label": label} for text, label in texts.items()])
    assert data.kind == CLASSES
    rows = rows_of(data)
    assert all(texts[one] == texts[other] for one, other in rows)
    assert {text for row in rows for text in row} == set(texts) - {"f"}
    labels = [data.classes[number] for number in data.rows[:, 0]]
    assert data.labels.tolist() == labels


def test_each_text_is_there_once_with_its_prompt_and_queries_know_all_their_documents(read):
    lines = [("q", "a"), ("q", "b"), ("r", "a"), ("a", "q")]
    data = read(
        [dict(zip(QUESTION, line, strict=True)) for line in lines], ("query: ", "", "never")
    )
    assert data.texts == [
        *(("query: ", "q"), ("", "a"), ("", "b"), ("query: ", "r"), ("query: ", "a"), ("", "q"))
    ]
    texts = [data.texts[number][1] for number in data.documents]
    found = {
        data.texts[query][1]: {texts[number] for number in some}
        for query, some in zip(data.queries, data.relevant, strict=True)
    }
    assert found == {"q": {"a", "b"}, "r": {"a"}, "a": {"q"}}


def test_scored_texts_are_neither_queries_nor_documents(read):
    data = read([{"sentence1": "a", "sentence2": "a", "score": 1}], ("query: ", "text: ", "any: "))
    assert (data.texts, data.rows.tolist()) == ([("any: ", "a")], [[0, 0]])


def test_rows_without_a_text_are_left_out_and_told(read, caplog):
    data = read([QUESTION, {"question": " ", "answer": "b"}, {"question": "c", "answer": None}])
    assert rows_of(data) == [["q", "a"]]
    assert "without one of their texts, which are left out: 2, the first on line 2" in caplog.text


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([{"text": "a"}], "nothing that says which belong together"),
        (
            [{"premise": "a", "hypothesis": "b", "label": 0}],
            "the column 'label' must hold entailment, neutral and contradiction; correct",
        ),
        ([{"title": "a", "abstract": "b"}], "name it with `query_column`"),
        (
            [{"sentence1": "a", "sentence2": "b", "score": None}],
            "line 1 has no number and no class",
        ),
        ([{**QUESTION, "answer": 3}], "line 1: the column 'answer' has 3, which is no text"),
        ([{**QUESTION, "answer": ""}], "has no row with all its texts"),
        (
            [{**QUESTION, "negatives": ["x"]}, {**QUESTION, "negatives": ["x", "y"]}],
            "line 2 has 4 texts, the first row 3",
        ),
        ([{"text": "a", "label": 1}, {"text": "b", "label": 2}], "two classes with two texts"),
        (
            [{"premise": "a", "hypothesis": "b", "label": "entailment"}],
            "no premise has both an entailment and a contradiction",
        ),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(read, lines, sentence):
    with pytest.raises(UserError, match=sentence):
        read(lines)


def test_a_column_that_is_named_must_hold_numbers(read):
    with pytest.raises(
        UserError, match="must hold entailment, neutral and contradiction, or numbers"
    ):
        read([{**QUESTION, "mood": "high"}], label="mood")


def test_a_text_of_several_classes_is_told_and_not_trained_on(read, caplog):
    lines = [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("both", 1), ("both", 2)]
    data = read([{"text": text, "label": label} for text, label in lines])
    assert sorted(sorted(row) for row in rows_of(data)) == [["a", "b"], ["c", "d"]]
    assert "1 texts have several classes" in caplog.text


def test_scores_are_numbers(read):
    data = read([{"sentence1": "a", "sentence2": "b", "score": "0.25"}])
    assert data.labels.dtype == np.float32


def test_a_drawn_table_has_some_queries_several_times_and_all_documents_once(read):
    data = read([{"question": f"q{n % 5}", "answer": f"a{n}"} for n in range(10)])
    drawn = data.drawn(np.random.default_rng(1))
    assert drawn.documents.tolist() == data.documents.tolist()
    assert len(drawn.rows) == len(data.rows)
    assert len(drawn.queries) == len(drawn.relevant) == 5
    assert len({*drawn.queries.tolist()}) < 5
    right = dict(zip(data.queries.tolist(), data.relevant, strict=True))
    assert [right[query] for query in drawn.queries.tolist()] == drawn.relevant
