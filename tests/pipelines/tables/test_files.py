import bz2
import csv
import gzip
import io
import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora import encodings
from pipelines.tables import files
from pipelines.tables.files import open_table

ROWS = [["text", "label"], ['It rains,\n"hard".', "1"], ["a\tb", "0"]]
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def as_csv(rows, delimiter=",", line_end="\n"):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=line_end).writerows(rows)
    return text.getvalue()


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def values(file):
    return [list(record.values.values()) for record in file.records()]


@pytest.mark.parametrize("packing", ["", ".xz"])
@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.tsv", "\t"), ("s.csv", ";")])
def test_quoted_fields_may_hold_delimiters_line_breaks_and_quotation_marks(
    tmp_path, packing, name, delimiter
):
    # A first line without commas, for the semicolons.
    content = PACKERS[packing](as_csv(ROWS, delimiter).encode())
    file = open_table(write(tmp_path, name + packing, content))
    assert file.columns == ("text", "label")
    assert values(file) == ROWS[1:]


def test_a_record_has_the_line_on_which_it_begins(tmp_path):
    file = open_table(write(tmp_path, "t.csv", 'text,label\n\n"a\nb",1\nc,0\n'))
    assert [record.line for record in file.records()] == [3, 5]


def test_a_tsv_file_with_single_quotation_marks_has_no_quoted_fields(tmp_path):
    text = 'text\tlabel\n"He" said: 5" of rain\t1\n"quoted"\t0\n'
    file = open_table(write(tmp_path, "t.tsv", text))
    assert values(file) == [['"He" said: 5" of rain', "1"], ['"quoted"', "0"]]


def test_a_mark_that_opens_a_field_and_does_not_close_it_is_a_character(tmp_path):
    text = 'text\tlabel\n"Great film\t1\nok\t0\nbad "\t0\nfine\t1\n'
    expected = [['"Great film', "1"], ["ok", "0"], ['bad "', "0"], ["fine", "1"]]
    assert values(open_table(write(tmp_path, "t.tsv", text))) == expected
    swapped = "".join("\t".join(line.split("\t")[::-1]) + "\n" for line in text.splitlines())
    assert values(open_table(write(tmp_path, "u.tsv", swapped))) == [x[::-1] for x in expected]


@pytest.mark.parametrize(
    "text",
    [
        'text\n"he began\nmiddle\nand ended"\nlast\n',
        'label\ttext\npos\t"he began\n\nneg\tmiddle\nneg\tand ended"\npos\tlast\n',
        'text\tlabel\tx\n"ok"\tpos\t1\nhe\tneg\t"\nand\tneg\t"\nlast\tneg\t1\n',
        'text\tlabel\n"\tneg\nmore\tpos\n"\tneg\n',
        'text\tlabel\nmore\t0\n"he said yes\t1\n',
    ],
)
def test_every_line_is_a_row_where_all_have_the_headers_tabs(tmp_path, text):
    expected = [line.split("\t") for line in text.splitlines()[1:] if line]
    assert values(open_table(write(tmp_path, "t.tsv", text))) == expected


def test_a_quoted_field_may_end_with_a_line_break(tmp_path):
    rows = [["text", "label"], ["It rains.\n", "1"], ["Fine.\n\nDry.\n", "0"], ["x", "1"]]
    for turned in (rows, [row[::-1] for row in rows]):
        file = open_table(write(tmp_path, "t.tsv", as_csv(turned, "\t")))
        assert values(file) == turned[1:]


@pytest.mark.parametrize("columns", [["text"], ["label", "text"], ["text", "label", "text_b"]])
def test_quoted_fields_of_any_column_may_hold_line_breaks(tmp_path, columns):
    texts = ['It rains,\n\t"hard".\n', "x", "a\tb"]
    rows = [[text] * len(columns) for text in texts]
    file = open_table(write(tmp_path, "t.tsv", as_csv([columns, *rows], "\t")))
    assert values(file) == rows


@pytest.mark.parametrize("mark", ["sep=;", '"sep=;"', "sep=,"])
def test_the_line_that_only_excel_reads_is_skipped(tmp_path, mark):
    delimiter = mark.strip('"')[-1]
    text = f"\ufeff{mark}\r\ntext{delimiter}label\r\ngood{delimiter}1\r\n"
    file = open_table(write(tmp_path, "t.csv", text))
    assert (file.columns, values(file)) == (("text", "label"), [["good", "1"]])
    assert [record.line for record in file.records()] == [3]


def test_commas_of_texts_make_no_columns_in_tsv(tmp_path):
    path = write(tmp_path, "t.tsv", "Well, hello\nNo, thanks\nYes\n")
    assert values(open_table(path, header=False)) == [["Well, hello"], ["No, thanks"], ["Yes"]]
    assert open_table(path).columns == ("Well, hello",)
    path = write(tmp_path, "u.tsv", "Review text,label\nGood,1\n")
    assert open_table(path).columns == ("Review text", "label")


def test_json_lines_keep_the_types_of_their_values(tmp_path):
    lines = [{"text": "a\nb", "label": 1}, {"text": "c", "label": ["x"]}]
    text = "\ufeff" + "".join(json.dumps(line) + "\n" for line in lines)
    file = open_table(write(tmp_path, "t.jsonl", text))
    assert [record.values for record in file.records()] == lines


def test_a_json_array_is_read_like_json_lines(tmp_path):
    rows = [{"text": "a\nb", "label": 1}, {"text": "c", "label": 2}]
    file = open_table(write(tmp_path, "t.json", json.dumps(rows, indent=2)))
    assert [record.values for record in file.records()] == rows
    assert [record.line for record in file.records()] == [2, 6]


def test_an_empty_text_of_the_only_column_is_a_row(tmp_path):
    file = open_table(write(tmp_path, "t.csv", 'text\na\n""\n\nb\n'))
    assert [(record.line, *record.values.values()) for record in file.records()] == [
        (2, "a"),
        (3, ""),
        (5, "b"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("t.csv", '{"text": "a"}\n', "json_lines"),
        ("t.tsv", "text,label\na,1\n", "csv"),
        ("t.csv", "a text,a\tlabel\na,1\n", "csv"),
    ],
)
def test_content_counts_more_than_the_ending(tmp_path, name, text, form):
    assert open_table(write(tmp_path, name, text)).form == form


BAD = {
    ("t.jsonl", "text,label\na,1\n"): "line 1 is no JSON object",
    ("t", "text\na\n"): "neither its name nor its first line says",
    ("t.csv", "\n\n"): "has no rows",
    ("t.json", "[]\n"): "has no rows",
    ("t.csv", "text,label\na,1\na,b,c\n"): r"line 3 has 3 columns .* \(text, label\); correct it",
    ("t.csv", 'text,label\na,1\n"b,2\n'): "the row that begins on line 3 is not quoted",
    (
        "t.csv",
        "text,label\na,1\nb\rc,2\n",
    ): "the row that begins on line 3 is not quoted .*carriage returns",
    ("t.csv", "text,label\na,1\n".encode("utf-16")): "is UTF-16; give `encoding",
    ("t.jsonl", '{"text": "a"}\n{"text": 1\n'): "line 2 is not JSON from column 11 on",
    ("t.jsonl", '{"a": "a", "a": "b"}\n'): "line 1 has the column 'a' twice",
}


@pytest.mark.parametrize(("name", "content"), BAD)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, name, content):
    with pytest.raises(UserError, match=BAD[name, content]) as error:
        list(open_table(write(tmp_path, name, content)).records())
    assert str(error.value).startswith(str(tmp_path))


CELLS = st.text(st.characters(blacklist_characters="\r\x00", blacklist_categories=["Cs"]))


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1))
def test_what_a_csv_writer_writes_is_read_as_it_was(tmp_path_factory, rows):
    text = as_csv([["text", "label"], *rows])
    file = open_table(write(tmp_path_factory.mktemp("csv"), "t.csv", text))
    assert values(file) == [list(row) for row in rows]


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    import tensorflow as tf
    import tensorflow_datasets as tfds

    folder = tmp_path_factory.mktemp("tfds")
    examples = {"text": ["Good ß.", "Bad."], "label": [1, 0], "tags": [[0, 1], [1, 1]]}
    tfds.dataset_builders.store_as_tfds_dataset(
        name="reviews",
        version="1.0.0",
        features=tfds.features.FeaturesDict(
            {
                "text": tfds.features.Text(),
                "label": tfds.features.ClassLabel(names=["neg", "pos"]),
                "tags": tfds.features.Sequence(tfds.features.ClassLabel(names=["a", "b"])),
            }
        ),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices(examples)},
        data_dir=folder,
        disable_shuffling=True,
    )
    tfds.core.add_data_dir(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("data_set")
def test_a_data_set_has_the_names_of_its_classes():
    file = open_table("tfds:reviews:train")
    assert set(file.columns) == {"text", "label", "tags"}
    assert [(record.line, record.values) for record in file.records()] == [
        (1, {"text": "Good ß.", "label": "pos", "tags": ["a", "b"]}),
        (2, {"text": "Bad.", "label": "neg", "tags": ["b", "b"]}),
    ]
    assert all(path.is_file() for path in file.paths())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'text,label\n"a\n' + "word\n" * 2000 + '",1\n'),
        ("t.jsonl", '{"text": "a"}\n{"text": "' + "b" * 9000 + '"}\n'),
    ],
)
def test_a_record_that_never_ends_is_refused_by_its_line(tmp_path, monkeypatch, name, content):
    for module in (files, encodings):
        monkeypatch.setattr(module, "MOST_LINE_BYTES", 5000)
    with pytest.raises(
        UserError, match=rf"{name}: (line 2 has more than|the row that begins on line 2 .*limit)"
    ):
        list(open_table(write(tmp_path, name, content)).records())
