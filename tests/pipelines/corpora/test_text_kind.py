import logging
import pydoc_data.topics

import pytest

from pipelines.corpora.text_kind import OtherKinds, kind_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<!DOCTYPE html>\n<html><body><p>One.</p></body></html>\n", "HTML"),
        ("  <html lang='ko'>\n", "HTML"),
        ("<div>\n<h1>한글</h1>\n", "HTML"),
        ('<?xml version="1.0"?>\n<mediawiki>\n', "HTML"),
        ('<doc id="1" title="A">\nA\n\nText.\n</doc>\n', "HTML"),
        ('{"text": "One."}\n{"text": "Two."}\n', "JSON"),
        ('{"title": "a", "text": "' + "word " * 99, "JSON"),  # a line that the sample cuts
        ('[{"text": "One."}, {"text": "Two."}]', "JSON"),
        ("[\n {\n", "JSON"),
        ('\ufeffid,text\r\n7,"Yes, it is."\r\n', "CSV"),
        ("id\tdocument\tlabel\n1\t좋다\t1\n", "CSV"),
        ("리뷰;감정\n", "CSV"),
        ("", None),
        ("\n\n", None),
        ("{\n", None),
        ("{One.}\n", None),
        ("The <p> tag begins a paragraph, <b> makes letters bold.\n", None),
        ("<p> begins a paragraph.\n", None),
        ("[1] A note, and nothing else.\n", None),
        ("<!-- a remark -->\nAnd a sentence after it.\n", None),
        ("그는 1,200명을 보았다.\n", None),
        ("Roses are red,\nviolets are blue,\n", None),
        ("\tAnd so, it goes.\n", None),
        ("First; second; third.\n", None),
        ("One\n", None),
    ],
)
def test_other_kinds_are_told_by_their_first_line(text, kind):
    assert kind_of(text) == kind


def test_pythons_own_documentation_is_text():
    topics = pydoc_data.topics.topics
    assert {name: kind for name, text in topics.items() if (kind := kind_of(text))} == {}


def test_one_line_is_said_of_each_kind_with_what_to_do(caplog):
    others = OtherKinds("leave it out")
    table, page = b"a,b\n" * 9, b"<html>"
    for path, start in [("1.txt", table), ("2.txt", b"Text.\n"), ("3.txt", table), ("4.txt", page)]:
        others.look(path, start)
    with caplog.at_level(logging.WARNING):
        others.warn()
    assert caplog.messages == [
        "1.txt (and 1 more): begins like CSV and is read as plain text, separators and all; leave "
        "it out.",
        "4.txt: begins like HTML and is read as plain text, tags and all; leave it out.",
    ]
