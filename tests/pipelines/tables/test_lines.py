"""One opening under every reader: packing, byte-order marks, encodings and line ends."""

import bz2
import gzip
import json
import lzma

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tables.files import open_table, read_table
from pipelines.tables.lines import read_json, read_lines, read_text
from pipelines.tasks.choices.files import read_choices
from pipelines.tasks.questions.files import read_questions
from pipelines.tasks.tagging.files import open_tagged, read_sentences
from pipelines.vectors.texts import open_texts

PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
QUESTION = {"id": "1", "question": "What?", "answers": [{"text": "rained", "answer_start": 3}]}
ARTICLE = {"title": "T", "paragraphs": [{"context": "It rained.", "qas": [QUESTION]}]}


def records(path):
    return list(open_table(path).records())


def sentences(path):
    return [(one.items, one.tags, one.numbers) for one in read_sentences(open_tagged(path))]


def questions(path):
    found = read_questions(path, version_2_with_negative=False)
    return [(one.text, one.passage.text, one.answers) for one in found]


READERS = {
    "labels": ("t.csv", 'text,label\n"It,\nrains",1\n', records),
    "glue": ("dev.tsv", 'sentence\tlabel\n"open\t1\n', lambda path: list(read_table(path, []))),
    "tags": ("t.txt", "Ada B-PER\nruns O\n\nIt O\n", sentences),
    "choices": (
        "t.csv",
        "sent1,ending0,ending1,label\nIt rains.,yes,no,1\n",
        lambda path: list(read_choices(path, labelled=True)),
    ),
    "questions": ("q.json", json.dumps({"data": [ARTICLE]}), questions),
    "passages": ("p.txt", "It  rained.\n", read_text),
    "predictions": ("p.json", '{"1": "rained"}\n', lambda path: read_json(path, "a file")),
    "vectors": ("t.txt", "one\n\nthree \u2028 four\n", lambda path: list(open_texts(path))),
}  # fmt: skip


def write(folder, name, content):
    folder.mkdir()
    path = folder / name
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_marks_and_packed_files_for_what_they_are(tmp_path, reader):
    name, text, read = READERS[reader]
    expected = read(write(tmp_path / "plain", name, text.encode()))
    marked = b"\xef\xbb\xbf" + text.encode()
    for number, (ending, pack) in enumerate(PACKERS.items()):
        path = write(tmp_path / str(number), name + ending, pack(marked))
        assert read(path) == expected, ending


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"questions", "predictions"}))
def test_every_reader_refuses_another_encoding(tmp_path, reader):
    name, text, read = READERS[reader]
    path = write(tmp_path / "latin", name, text.encode() + "é\n".encode("latin-1"))
    with pytest.raises(UserError, match=rf"{name}: (line|byte) \d+ is not UTF-8; (convert|give)"):
        read(path)


@pytest.mark.parametrize(
    "reader", sorted(READERS.keys() - {"questions", "predictions", "passages"})
)
def test_carriage_returns_of_line_ends_are_no_text(tmp_path, reader):
    name, text, read = READERS[reader]
    text = text.replace(",\n", ",")  # what stands in quotation marks stays as it is
    expected = read(write(tmp_path / "unix", name, text.encode()))
    assert read(write(tmp_path / "windows", name, text.replace("\n", "\r\n").encode())) == expected


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = write(tmp_path / "x", "x.txt", "a\x0b\x85b\u2028c\r\r\n\ufeffd".encode())
    assert list(read_lines(path)) == [(1, "a\x0b\x85b\u2028c"), (2, "\ufeffd")]
    assert [line for _, line in read_lines(path, keep_ends=True)] == [
        "a\x0b\x85b\u2028c\r\r\n",
        "\ufeffd\n",
    ]
    assert read_text(path) == "a\x0b\x85b\u2028c\r\r\n\ufeffd"
