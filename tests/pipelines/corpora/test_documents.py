import gzip
import logging
import re
import tarfile

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.documents import (
    Reading,
    TextSource,
    expand_patterns,
    find_sources,
    kind_of,
    paragraphs_of,
    read_blocks,
)
from pipelines.corpora.encodings import read_line_blocks


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
        TextSource(f"{folder}/b.txt", "text"),
        TextSource(f"{folder}/a.jsonl", "json_lines"),
        TextSource(f"{folder}/wiki/AA/wiki_00", "wikiextractor"),
    ]


def test_what_another_run_is_writing_is_no_text(folder):
    (folder / ".sentences.txt.machine.17.incomplete").write_text("Half a sent")
    assert expand_patterns([f"{folder}/*"]) == [
        f"{folder}/a.jsonl",
        f"{folder}/b.txt",
        f"{folder}/odd[1].txt",
        f"{folder}/wiki/AA/wiki_00",
    ]


def test_links_to_folders_are_followed_but_not_in_circles(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "c.txt").write_text("One.\n")
    (other / "back").symlink_to(folder)
    (folder / "wiki" / "linked").symlink_to(other)
    found = expand_patterns([f"{folder}/wiki", str(folder)])
    assert found[:2] == [f"{folder}/wiki/AA/wiki_00", f"{folder}/wiki/linked/back/a.jsonl"]
    assert f"{folder}/wiki/linked/c.txt" in found


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
        assert find_sources([*empty, f"{folder}/b.txt"]) == [TextSource(f"{folder}/b.txt", "text")]
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
        ('{"Hello" she said.\n"Bye": he}\n', None),
        ("[\nOne.\n", None),
        ("The <p> tag begins a paragraph, <b> makes letters bold.\n", None),
        ("[1] A note, and nothing else.\n", None),
        ("그는 1,200명을 보았다.\n", None),
        ("Roses are red,\nviolets are blue,\n", None),
        ("\tAnd so, it goes.\n", None),
    ],
)
def test_other_kinds_are_told_by_their_first_line(text, kind):
    assert kind_of(text) == kind


def documents(path, form, **reading):
    """The documents of a source as lists of paragraphs."""
    settings = Reading(**reading)
    found = [[]]
    for block in read_blocks(TextSource(str(path), form), settings):
        for paragraph in paragraphs_of(block, settings):
            if paragraph is None:
                found.append([])
            else:
                found[-1].append(paragraph)
    return [document for document in found if document]


def test_plain_text_has_empty_lines_between_documents(tmp_path):
    (tmp_path / "text").write_bytes(b"\n\xef\xbb\xbfOne.\r\nTwo  words.\n \n\nThree\x0bfour.")
    expected = [["\ufeffOne.", "Two words."], ["Three four."]]
    assert documents(tmp_path / "text", "text") == expected


def test_bytes_that_are_no_utf8_are_dropped(tmp_path):
    (tmp_path / "text").write_bytes(b"caf\xc3\xa9 \xff!\n")
    assert documents(tmp_path / "text", "text") == [["café !"]]


def test_a_half_of_a_character_in_json_becomes_one_that_no_vocabulary_has(tmp_path):
    lines = [
        r'{"text": "Cut emoji \ud83d"}',
        r'{"text": ["\udc00One.", "\ud83d"]}',
        r'{"text": "Whole: \ud83d\ude00"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    expected = [["Cut emoji \ufdd0"], ["\ufdd0One.", "\ufdd0"], ["Whole: 😀"]]
    assert documents(tmp_path / "a.jsonl", "json_lines") == expected


def test_a_json_line_is_a_document_and_its_lines_are_paragraphs(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(
        gzip.compress(b'{"text": "One.\\n\\nTwo."}\n\n{"text": ["Three.", "Four."], "id": 1}\n')
    )
    found = documents(tmp_path / "a.jsonl.gz", "json_lines")
    assert found == [["One.", "Two."], ["Three.", "Four."]]


NO_TEXT = "has no text, or list of texts, in the field 'text'"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"text": "a" "b": 1}', "is not JSON from column 14 on (Expecting ',' delimiter)"),
        ("[" * 100_000, "is not JSON (nested too deeply)"),
        (
            '{"body": "x"}',
            "has no text, or list of texts, in the field 'text' (its fields: 'body')",
        ),
        *((f'{{"text": {value}}}', NO_TEXT) for value in ("5", '["x", null]')),
    ],
)
def test_broken_json_a_missing_field_and_one_without_text_differ(tmp_path, line, fault):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "x"}}\n{line}\n')
    with pytest.raises(UserError, match=re.escape(f"a.jsonl: line 2 {fault}")):
        documents(tmp_path / "a.jsonl", "json_lines")


WIKI = """<doc id="1" url="u" title="A &amp; B">
A &amp; B

First &lt;one&gt;.
Second.

</doc>
<doc id="2" url="u" title="C">
C

Third.
</doc>
"""


def test_wikiextractor_output_without_titles_and_marks(tmp_path):
    (tmp_path / "wiki_00").write_text(WIKI)
    expected = [["First <one>.", "Second."], ["Third."]]
    assert documents(tmp_path / "wiki_00", "wikiextractor") == expected


def test_a_title_is_found_wherever_a_block_ends(tmp_path, monkeypatch):
    (tmp_path / "wiki_00").write_text(WIKI)
    expected = [["First <one>.", "Second."], ["Third."]]
    from pipelines.corpora import encodings

    for size in range(1, len(WIKI), 7):
        monkeypatch.setattr(
            encodings,
            "read_line_blocks",
            lambda path, s=size, **more: read_line_blocks(path, s, **more),
        )
        assert documents(tmp_path / "wiki_00", "wikiextractor") == expected


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    """A data set of two texts in the folder of TensorFlow Datasets."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    folder = tmp_path_factory.mktemp("tfds")
    tfds.dataset_builders.store_as_tfds_dataset(
        name="two_texts",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"body": tfds.features.Text()}),
        split_datasets={
            "train": tf.data.Dataset.from_tensor_slices({"body": ["One.\nTwo.", "Drei ß."]})
        },
        data_dir=folder,
        disable_shuffling=True,
    )
    tfds.core.add_data_dir(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("data_set")
def test_a_data_set_by_name():
    found = documents("two_texts:train", "tfds", text_field="body")
    assert found == [["One.", "Two."], ["Drei ß."]]


@pytest.mark.parametrize(
    "line",
    ["{Enter the King.} He speaks.", "{{Infobox}}", "{ one, two }", '{"Hello" she said', "["],
)
def test_plain_text_may_begin_with_a_brace(tmp_path, line):
    (tmp_path / "text.txt").write_text(f"{line}\n")
    (source,) = find_sources([f"{tmp_path}/text.txt"])
    assert source.form == "text"
    assert documents(source.name, source.form) == [[line]]


@pytest.mark.parametrize("line", ['{"text": "a" "b": 1}', '{"text: "a"}', "{'text': 'a'}", "{}"])
def test_json_lines_whose_first_one_is_broken_are_no_plain_text(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f'{line}\n{{"text": "x"}}\n')
    (source,) = find_sources([f"{tmp_path}/a.jsonl"])
    with pytest.raises(UserError, match=r"a\.jsonl: line 1 "):
        documents(source.name, source.form)
