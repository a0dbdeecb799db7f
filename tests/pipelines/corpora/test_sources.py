import gzip
import logging
import tarfile

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.sources import Source, expand_patterns, find_sources, kind_of
from pipelines.corpora.unpacking import read_line_blocks


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "b.txt": "Text.\n",
        "a.jsonl": '{"text": "x"}\n',
        "wiki/AA/wiki_00": '<doc id="1">\nTitle\n\nText.\n</doc>\n',
        "wiki/.hidden": "x",
        "wiki/.train.tfrecord.work/note": "x",
        "odd[1].txt": "Text.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_forms_are_told_by_the_beginning_of_a_file(folder):
    names = [f"{folder}/b.txt", f"{folder}/a.jsonl", f"{folder}/wiki"]
    assert find_sources(names) == [
        Source(f"{folder}/b.txt", "text"),
        Source(f"{folder}/a.jsonl", "json_lines"),
        Source(f"{folder}/wiki/AA/wiki_00", "wikiextractor"),
    ]


def test_what_another_run_is_writing_is_no_text(folder):
    (folder / ".sentences.txt.machine.17.incomplete").write_text("Half a sent")
    assert expand_patterns([f"{folder}/*"]) == [
        f"{folder}/a.jsonl",
        f"{folder}/b.txt",
        f"{folder}/odd[1].txt",
        f"{folder}/wiki/AA/wiki_00",
    ]


def test_what_is_not_there_is_named(folder):
    with pytest.raises(UserError, match=r"none\*\.txt: no such file"):
        expand_patterns([f"{folder}/none*.txt"])
    with pytest.raises(UserError, match="`input_file` names no file"):
        find_sources([])


def test_empty_files_are_left_out_unless_all_are(folder, caplog):
    """A splitter leaves some where there are fewer documents than files."""
    for name in ("c.txt", "d.txt"):
        (folder / name).touch()
    empty = [f"{folder}/c.txt", f"{folder}/d.txt"]
    with caplog.at_level(logging.INFO):
        assert find_sources([*empty, f"{folder}/b.txt"]) == [Source(f"{folder}/b.txt", "text")]
    assert caplog.messages == [f"{path}: is empty and left out" for path in empty]
    with pytest.raises(UserError, match=r"c\.txt: is empty"):
        list(read_line_blocks(find_sources(empty)[0].name))


@pytest.mark.parametrize("start", ['[{"text": "x"}]', '\ufeff [\n  {\n"text": "x"}]'])
def test_a_json_array_is_no_plain_text(folder, start):
    (folder / "array.json").write_text(start)
    with pytest.raises(UserError, match=r"array\.json: is a JSON array; .* \(jq -c '\.\[\]'\)"):
        find_sources([f"{folder}/array.json"])


@pytest.mark.parametrize("name", ["reviews.TSV", "reviews.csv.gz"])
def test_a_table_is_no_plain_text_unless_it_is_said(folder, name):
    content = b"id,review\n1,fine\n"
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(UserError, match="is a table, and its header and all its cells would be"):
        find_sources([f"{folder}/{name}"])
    assert find_sources([f"{folder}/{name}"], "text")[0].form == "text"


def test_a_tar_archive_is_refused(folder):
    with tarfile.open(folder / "texts.tar.gz", "w:gz") as archive:
        archive.add(folder / "b.txt", "b.txt")
    with pytest.raises(UserError, match=r"texts\.tar\.gz: is a tar archive; unpack it"):
        find_sources([f"{folder}/texts.tar.gz"])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<!DOCTYPE html>\n<html><body><p>One.</p></body></html>\n", "HTML"),
        ('<?xml version="1.0"?>\n<mediawiki>\n', "HTML"),
        ('<doc id="1" title="A">\nA\n\nText.\n</doc>\n', "HTML"),
        ('{"title": "a", "text": "' + "word " * 99, "JSON"),  # a line that the sample cuts
        ("[\n {\n", "JSON"),
        ('\ufeffid,text\r\n7,"Yes, it is."\r\n', "CSV"),
        ("id\tdocument\tlabel\n1\t좋다\t1\n", "CSV"),
        ("", None),
        ("{One.}\n", None),
        ("The <p> tag begins a paragraph, <b> makes letters bold.\n", None),
        ("[1] A note, and nothing else.\n", None),
        ("그는 1,200명을 보았다.\n", None),
        ("Roses are red,\nviolets are blue,\n", None),
        ("\tAnd so, it goes.\n", None),
    ],
)
def test_other_kinds_are_told_by_their_first_line(text, kind):
    assert kind_of(text) == kind
