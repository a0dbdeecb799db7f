import json
import lzma
import resource
import textwrap

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora import encodings
from pipelines.corpora.documents import Reading
from pipelines.corpora.encodings import read_line_blocks
from pipelines.corpora.split_sentences import SplitSentencesConfig, split_sentences

TEXT = "One. Two!\nThree.\n\n\n\nFour.\n\nFive. Six.\n"
SENTENCES = "One.\nTwo!\nThree.\n\nFour.\n\nFive.\nSix.\n\n"


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return str(tmp_path / "text.txt")


def test_one_sentence_a_line_and_an_empty_line_between_documents(text, tmp_path):
    said = split_sentences(
        SplitSentencesConfig([text], str(tmp_path / "out" / "sentences.txt"), num_workers=1)
    )
    assert (tmp_path / "out" / "sentences.txt").read_text() == SENTENCES
    assert said == "3 documents, 6 sentences"


@pytest.mark.parametrize("size", [1, 9, 19])
@pytest.mark.parametrize("num_shards", [1, 2])
def test_blocks_do_not_show(text, tmp_path, monkeypatch, size, num_shards):
    monkeypatch.setattr(
        encodings, "read_line_blocks", lambda path, **more: read_line_blocks(path, size, **more)
    )
    (tmp_path / "text2.txt").write_text(TEXT)
    config = SplitSentencesConfig(
        [f"{tmp_path}/text*"], output_dir=str(tmp_path), num_shards=num_shards, num_workers=1
    )
    assert split_sentences(config) == "6 documents, 12 sentences"
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


PARAGRAPHS = [
    "The old house stood at the end of a lane, where nobody had lived since the great storm. Its "
    "windows were dark. I did not believe what was said of it, but on the evening of which I want "
    "to tell I was rather late, and looked up by chance.",
    "There was a light. It went from window to window, slowly, as if somebody were looking for "
    "what had been lost there long ago, and it did not go out when I called.",
]


def wrapped(form):
    """The paragraphs, cut at 60 characters, as a file's content and as Windows ends its lines."""
    lines = [[*textwrap.wrap(one, 60), ""] for one in PARAGRAPHS]
    text = "\n".join(line for paragraph in lines for line in paragraph)
    if form == "json_lines":
        return json.dumps({"text": text}) + "\n"
    return f"<doc id='1'>\nTitle\n\n{text}\n</doc>\n" if form == "wikiextractor" else f"{text}\n"


def sentences_of(tmp_path, content, **options):
    (tmp_path / "wrapped.txt").write_text(content)
    out = tmp_path / "sentences.txt"
    files = {"input_file": [f"{tmp_path}/wrapped.txt"], "output_file": str(out)}
    split_sentences(SplitSentencesConfig(**files, num_workers=1, **options))
    return [document.splitlines() for document in out.read_text().split("\n\n") if document]


SPLIT = [
    ["The old house stood at the end of a lane, where nobody had lived since the great storm.",
     "Its windows were dark.", PARAGRAPHS[0][PARAGRAPHS[0].index("I did"):]],
    ["There was a light.", PARAGRAPHS[1][PARAGRAPHS[1].index("It went"):]],
]  # fmt: skip


@pytest.mark.parametrize("form", ["text", "json_lines", "wikiextractor"])
def test_sentences_are_those_of_paragraphs_whose_lines_were_cut(tmp_path, form, caplog):
    reading = Reading(one_document_per_file=True)
    found = sentences_of(tmp_path, wrapped(form), reading=reading)
    assert [line for document in found for line in document] == SPLIT[0] + SPLIT[1]
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path}/wrapped.txt: lines seem to be cut at one width, so")
    assert "give `join_lines=False`" in message


def test_cut_lines_are_left_or_joined_as_is_asked_for(tmp_path, caplog):
    cut = [textwrap.wrap(one, 60) for one in PARAGRAPHS]
    left = sentences_of(tmp_path, wrapped("text"), join_lines=False)
    assert left[1][-2:] == cut[1][-2:]  # each end of a line ends a sentence
    assert sentences_of(tmp_path, "One\nline. And\nanother.\n", join_lines=True) == [
        ["One line.", "And another."]
    ]
    assert caplog.messages == []


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [400, 700])
def test_blocks_do_not_show_in_joined_lines(tmp_path, monkeypatch, size, ending):
    monkeypatch.setattr(
        encodings, "read_line_blocks", lambda path, **more: read_line_blocks(path, size, **more)
    )
    content = (wrapped("text") * 9).replace("\n", ending)
    assert sentences_of(tmp_path, content) == SPLIT * 9


def test_input_without_text_is_refused_and_leaves_no_file(tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    config = SplitSentencesConfig(
        [str(tmp_path / "blank.txt")], str(tmp_path / "out.txt"), num_workers=1
    )
    with pytest.raises(UserError, match=r"blank\.txt: has no text"):
        split_sentences(config)
    assert not (tmp_path / "out.txt").exists()


def into_shards(text, folder, num_shards):
    config = SplitSentencesConfig(
        [text], output_dir=str(folder), num_shards=num_shards, num_workers=1
    )
    split_sentences(config)
    return sorted(path.name for path in folder.iterdir())


def test_another_number_of_shards_takes_the_place_of_the_earlier_one(text, tmp_path):
    into_shards(text, tmp_path / "out", 3)
    for name in ("sentences-notes.txt", "sentences-00000-of-00003.txt.bak"):
        (tmp_path / "out" / name).write_text("not ours")
    assert into_shards(text, tmp_path / "out", 2) == [
        "sentences-00000-of-00002.txt",
        "sentences-00000-of-00003.txt.bak",
        "sentences-00001-of-00002.txt",
        "sentences-notes.txt",
    ]


def test_input_that_the_new_files_would_replace_is_refused(text, tmp_path):
    before = into_shards(text, tmp_path / "out", 2)
    shard = tmp_path / "out" / before[1]
    with pytest.raises(UserError, match=rf"{before[1]}: is input, .* name another `output_dir`"):
        into_shards(str(shard), tmp_path / "out", 3)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before


@pytest.mark.parametrize(
    ("given", "code"),
    [("KO", "ko"), ("ko_KR", "ko"), ("kor", "ko"), ("zh-Hans-CN", "zh"), ("deu", "de"),
     ("ast", "ast"), ("auto", "auto")],
)  # fmt: skip
def test_a_language_is_its_code_whatever_its_case_and_region(given, code):
    assert SplitSentencesConfig(language=given).language_code == code


@pytest.mark.parametrize("given", ["korean", "jp", "", "k", "한국어", "e n"])
def test_what_is_no_code_of_a_language_is_refused(given):
    with pytest.raises(UserError, match=f"^`language={given}`: is no ISO 639 code of two or three"):
        SplitSentencesConfig(language=given)


def test_there_may_be_more_shards_than_the_system_lets_open_at_first(text, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert len(into_shards(text, tmp_path / "out", 300)) == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_file_that_could_not_be_written_is_named(tmp_path):
    """The others cannot be ended, either, but they are not what failed first."""
    documents = ["It is short. " * 3, "It goes on. " * 500, "It never ends. " * 2000]
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(UserError, match=r"sentences-00000-of-00002\.txt: cannot be written"):
            into_shards(str(tmp_path / "text.txt"), tmp_path / "out", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "out").iterdir())
