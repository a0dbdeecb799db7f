import lzma

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora import documents
from pipelines.corpora.documents import Reading
from pipelines.corpora.unpacking import read_line_blocks
from pipelines.jobs.split_sentences import SplitSentencesConfig, split_sentences

TEXT = "One. Two!\nThree.\n\n\n\nFour.\n\nFive. Six.\n"
SENTENCES = "One.\nTwo!\nThree.\n\nFour.\n\nFive.\nSix.\n\n"


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return str(tmp_path / "text.txt")


def test_one_sentence_a_line_and_an_empty_line_between_documents(text, tmp_path):
    counts = split_sentences(
        SplitSentencesConfig([text], str(tmp_path / "out" / "sentences.txt"), num_workers=1)
    )
    assert (tmp_path / "out" / "sentences.txt").read_text() == SENTENCES
    assert counts == (3, 6)


@pytest.mark.parametrize("size", [1, 5, 9, 10, 18, 19, 20, 27])
@pytest.mark.parametrize("num_shards", [1, 2])
def test_blocks_do_not_show(text, tmp_path, monkeypatch, size, num_shards):
    monkeypatch.setattr(documents, "read_line_blocks", lambda path: read_line_blocks(path, size))
    (tmp_path / "text2.txt").write_text(TEXT)
    config = SplitSentencesConfig(
        [f"{tmp_path}/text*"], output_dir=str(tmp_path), num_shards=num_shards, num_workers=1
    )
    assert split_sentences(config) == (6, 12)
    shards = [path.read_text() for path in sorted(tmp_path.glob("sentences-*"))]
    first, second, third = [part + "\n\n" for part in SENTENCES.removesuffix("\n\n").split("\n\n")]
    if num_shards == 1:
        assert shards == [SENTENCES * 2]
    else:
        assert shards == [first + third + second, second + first + third]


def test_the_number_of_workers_does_not_show(tmp_path):
    lines = (
        f'{{"text": "Document {n}. It is short.\\n두 번째 문단이다. 끝."}}\n' for n in range(999)
    )
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress("".join(lines).encode()))
    outputs = []
    for num_workers in (1, 3):
        output = tmp_path / f"{num_workers}.txt"
        split_sentences(
            SplitSentencesConfig([str(tmp_path / "a.*")], str(output), num_workers=num_workers)
        )
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    assert (
        outputs[0]
        .decode()
        .startswith("Document 0.\nIt is short.\n두 번째 문단이다.\n끝.\n\nDocument 1.\n")
    )


def test_a_file_can_be_one_document(text, tmp_path):
    config = SplitSentencesConfig(
        [text],
        str(tmp_path / "out.txt"),
        reading=Reading(one_document_per_file=True),
        num_workers=1,
    )
    assert split_sentences(config) == (1, 6)


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ({}, "either --output_file or --output_dir"),
        ({"output_file": "x", "output_dir": "y"}, "either --output_file or --output_dir"),
        ({"output_file": "x", "num_shards": 2}, "--num_shards needs --output_dir"),
    ],
)
def test_outputs_that_contradict_each_other_are_refused(text, outputs, sentence):
    with pytest.raises(UserError, match=sentence):
        split_sentences(SplitSentencesConfig([text], **outputs))


def test_input_without_text_is_refused_and_leaves_no_file(tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    config = SplitSentencesConfig(
        [str(tmp_path / "blank.txt")], str(tmp_path / "out.txt"), num_workers=1
    )
    with pytest.raises(UserError, match=r"blank\.txt: has no text"):
        split_sentences(config)
    assert not (tmp_path / "out.txt").exists()
