import gzip
import re

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.documents import (
    Reading,
    paragraphs_of,
    read_blocks,
)
from pipelines.corpora.sources import Source


def documents(path, form, **reading):
    """The documents of a source as lists of paragraphs."""
    settings = Reading(**reading)
    found = [[]]
    for block in read_blocks(Source(str(path), form), settings):
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
    from pipelines.corpora import documents as module
    from pipelines.corpora.unpacking import read_line_blocks

    for size in range(1, len(WIKI), 7):
        monkeypatch.setattr(
            module,
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
    return str(folder)


@pytest.mark.slow
def test_a_data_set_by_name(data_set):
    found = documents("two_texts:train", "tfds", text_field="body", data_dir=data_set)
    assert found == [["One.", "Two."], ["Drei ß."]]
