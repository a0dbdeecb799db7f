import csv
import io
import json
import logging
import pydoc_data.topics

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.corpora.text_kind import SAMPLE_BYTES, OtherKinds, kind_of

ENGLISH = st.sampled_from(
    [
        "the",
        "dog",
        "ran",
        "sees",
        "don't",
        "1,000",
        "3.5",
        "and",
        "(or)",
        "A-B",
        "e.g.",
        "2,500,000",
    ]
)
KOREAN = st.sampled_from(
    ["나는", "학교에", "갔다", "서울의", "1,200명이", "그는", "보았다", "하지만", "12,345원"]
)
CODE = st.sampled_from(
    [
        "def add(a,b): return a+b",
        'config = {"name": "x", "size": 3}',
        '{"name": "x"}',
        "<p>Hello, <b>world</b>.</p>",
        "x;y;z",
        "for (i=0;i<n;i++) {",
        "\treturn 0;",
        "a,b,c",
        "name\tvalue",
        "}",
        "[1,2,3]",
    ]
)


@st.composite
def sentences(draw, words):
    """A line as people write it: a blank follows each mark within it."""
    parts = draw(st.lists(words, min_size=1, max_size=12))
    marks = draw(st.lists(st.sampled_from(["", "", ",", ";", ":"]), min_size=12, max_size=12))
    line = " ".join(part + mark for part, mark in zip(parts, marks, strict=False))
    return line + draw(st.sampled_from([".", "!", "?", ",", "", '."']))


@st.composite
def proses(draw):
    """Sentences one a line, with empty lines between some; indented ones like a poem's."""
    language = sentences(draw(st.sampled_from([ENGLISH, KOREAN])))
    indents = st.sampled_from(["", "", "  ", "\t"])
    line = st.one_of(st.builds(str.__add__, indents, language), st.just(""))
    return "\n".join(draw(st.lists(line, max_size=20))) + draw(st.sampled_from(["", "\n"]))


@given(proses())
@example("그는 1,200명을 보았다.\n" * 9)
@example("Roses are red,\n" * 9)
@example("\tAnd so, it goes.\n" * 9)
@example("First; second; third.\n" * 9)
def test_prose_and_poems_in_english_and_korean_are_text(text):
    assert kind_of(text) is None


@given(
    st.lists(sentences(ENGLISH), min_size=3, max_size=9), st.lists(CODE, max_size=9), st.randoms()
)
def test_prose_with_code_in_it_is_text(prose, code, random):
    """A text begins with prose; code that is most of it may be taken for a table or a page."""
    rest = [*prose[1:], *code[: len(prose) - 2]]
    random.shuffle(rest)
    assert kind_of("\n".join([prose[0], *rest, "And so on."])) is None


def test_pythons_own_documentation_is_text():
    topics = pydoc_data.topics.topics
    assert {name: kind for name, text in topics.items() if (kind := kind_of(text))} == {}


def test_a_table_with_quotation_marks_of_its_text_is_a_table():
    """Tabs need no quotation marks, so that those in it are of the text and may stay open."""
    assert kind_of("id\ttext\n" + '7\t"Yes, it is.\n8\tNo.\n' * 6) == "a table"


VALUES = st.one_of(
    st.text(), st.integers(), st.lists(st.text(), max_size=3), st.none(), st.booleans()
)
OBJECTS = st.dictionaries(st.text(), VALUES)


@given(st.lists(OBJECTS, min_size=1), st.booleans())
def test_json_lines_are_json_lines(records, ascii_only):
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in records]
    # `json.dumps` leaves line ends of other alphabets as they are; only a line feed ends a line.
    assert kind_of("".join(f"{line}\n" for line in lines)) == "JSON lines"


def test_an_object_that_is_longer_than_the_sample_is_json_lines():
    line = json.dumps({"title": "a", "text": "word " * SAMPLE_BYTES})
    assert kind_of(line[:SAMPLE_BYTES]) == "JSON lines"


@given(st.lists(OBJECTS.filter(bool), min_size=2, max_size=20))
def test_json_over_several_lines_is_json(records):
    assert kind_of(json.dumps(records, indent=1) + "\n") == "JSON"


CELLS = st.one_of(st.integers().map(str), sentences(ENGLISH), sentences(KOREAN))


@given(
    st.integers(2, 4).flatmap(
        lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=6, max_size=9)
    ),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_a_table_that_is_written_as_tables_are_is_a_table(rows, delimiter):
    written = io.StringIO()
    names = [f"name{number}" for number in range(len(rows[0]))]
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerows([names, *rows])
    assert kind_of(written.getvalue()) == "a table"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<!DOCTYPE html>\n<html><body><p>One.</p></body></html>\n", "HTML"),
        ("  <html lang='ko'>\n", "HTML"),
        ("| id | text |\n|---|---|\n" + "| 7 | Yes, it is. |\n" * 5, "a table"),
        ('{"text": "One."}\n{"text": "Two.\n{"text": "Three."}\n', "JSON lines"),
        ("<div>\n<h1>한글</h1>\n<p>하나.</p>\n<p>둘.</p>\n</div>\n", "HTML"),
        ('<?xml version="1.0"?>\n<mediawiki>\n', "XML"),
        ('<doc id="1" title="A">\nA\n\nText.\n</doc>\n', "WikiExtractor's output"),
        ("\ufeffid,text\r\n" + '7,"Yes, it is."\r\n' * 6, "a table"),
        ("", None),
        ("\n\n", None),
        ("{\n", None),
        ("The <p> tag begins a paragraph, <b> makes letters bold and <i>, <em>, <a> more.\n", None),
        ("<p> begins a paragraph.\n" + "It ends with the next one.\n" * 9, None),
        ("id,text\n1,a\n", None),  # so few lines may be alike by chance
    ],
)
def test_other_kinds_are_told_by_how_they_begin(text, kind):
    assert kind_of(text) == kind


def test_one_line_is_said_of_each_kind_with_what_to_do(caplog):
    others = OtherKinds({"a table": "cut it"}, otherwise="leave it out")
    table, page = b"a,b\n" * 9, b"<html>"
    for path, start in [("1.txt", table), ("2.txt", b"Text.\n"), ("3.txt", table), ("4.txt", page)]:
        others.look(path, start)
    with caplog.at_level(logging.WARNING):
        others.warn()
    assert caplog.messages == [
        "1.txt (and 1 more): look like a table and are read as plain text, header, "
        "separators and all; cut it.",
        "4.txt: looks like HTML and is read as plain text, tags, scripts and all; leave it out.",
    ]


def test_plain_text_is_not_mentioned(caplog):
    others = OtherKinds({}, otherwise="leave it out")
    assert others.look("1.txt", "한 문장.\n".encode()) is None
    others.warn()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('[{"text": "One."}, {"text": "Two."}]', "JSON"),
        ('["One.", "Two."]\n', "JSON"),
        ('<mediawiki xmlns="http://www.mediawiki.org/">\n<page>\n', "XML"),
        ("<!-- made by hand -->\n<html>\n<body>One.</body>\n", "HTML"),
        ("[1] A note, and nothing else.\n", None),
        ("<!-- a remark -->\nAnd a sentence after it.\n", None),
    ],
)
def test_what_begins_in_another_way_is_known_too(text, kind):
    assert kind_of(text) == kind
