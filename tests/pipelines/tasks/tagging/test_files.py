"""Files of columns: what is a word, a sentence, a document, a remark; and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.encodings import TextEncoding
from pipelines.tasks.tagging.files import (
    TaggedFile,
    open_tagged,
    read_documents,
    read_sentences,
    with_tags,
)
from pipelines.tasks.tagging.texts import Counted, Notes


def write(folder, text):
    path = folder / "file.txt"
    path.write_bytes(text.encode())
    return path


def read(path, *, whole=True, **columns):
    layout = open_tagged(path, **columns)
    return layout, list(read_documents(layout, whole=whole))


def items(documents):
    return [[sentence.items for sentence in document.sentences] for document in documents]


CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

Peter NNP B-NP B-PER
-DOCSTART- -X- -X- O

Brussels NNP B-NP B-LOC
"""


def test_conlls_own_form_has_documents(tmp_path):
    path = write(tmp_path, CONLL_2003)
    file, documents = read(path)
    assert file == TaggedFile(path, tabs=False, width=4, word=0, tag=3)
    assert items(documents) == [[("EU", "rejects"), ("Peter",)], [("Brussels",)]]
    assert documents[0].sentences[0].tags == ("B-ORG", "O")
    assert documents[0].sentences[1].numbers == (6,)


CHARACTERS = """## train_00000-made\t비 온다 <서울:LC>
비\tO
 \tO
#\tO
서\tB-LC
울\tI-LC

## train_00001-made\t비
비\tO
"""


def test_characters_with_blanks_among_them_and_comments(tmp_path):
    _, documents = read(write(tmp_path, CHARACTERS))
    assert items(documents) == [[("비", " ", "#", "서", "울")], [("비",)]]


@pytest.mark.parametrize(
    ("line", "tabs", "width", "is_comment"),
    [
        ("# id 5239d808 domain=en", False, 4, True),
        ("# _ _ O", False, 4, False),
        ("# person", False, 2, False),
        ("#remark", False, 2, True),
        ("# a remark", False, 1, True),
        ("#\tO", True, 2, False),
        ("# text = It\trains", True, 2, True),
        ("#\thttp://made.example/1 [2009-10-17]", True, 4, True),  # as GermEval has them
    ],
)
def test_what_begins_with_a_hash_may_be_a_word(line, tabs, width, is_comment):
    assert TaggedFile(Path(), tabs, width, 0, width - 1).is_comment(line) is is_comment


def test_between_words_a_line_with_all_columns_is_a_word_whatever_its_tags_look_like(tmp_path):
    text = "# new document\nHe PRP O\n# SYM prod\n1 CD prod\n\n# second one\nIt PRP O\n"
    assert items(read(write(tmp_path, text))[1]) == [[("He", "#", "1")], [("It",)]]
    first = "# B-PROD SYM\n1 I-PROD CD\n"
    assert items(read(write(tmp_path, first), tag_column=2)[1]) == [[("#", "1")]]


def test_a_character_stays_one_where_its_composition_would_be_two(tmp_path):
    """A tag and a place are of each character."""
    text = "\u0958a\u212b"
    path = write(tmp_path, json.dumps({"text": text, "label": [[1, 2, "X"]]}) + "\n")
    layout = open_tagged(path, encoding=TextEncoding(unicode_form="nfc"))
    (document,) = read_documents(layout._replace(whole_lines=True), whole=True)
    assert document.sentences[0].items == ("\u0958", "a", "\u00c5")
    assert document.sentences[0].tags == ("O", "B-X", "O")


def test_a_document_begins_in_the_column_of_words_too(tmp_path):
    text = "O -DOCSTART-\n\nB-P Bob\n\nO ran\n\nO -DOCSTART-\n\nB-P Ada\n"
    path = write(tmp_path, text)
    assert items(read(path, word_column=2, tag_column=1)[1]) == [[("Bob",), ("ran",)], [("Ada",)]]


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_blanks_at_a_lines_end_are_no_part_of_a_tag(tmp_path, separator):
    path = write(tmp_path, f"Bob{separator}B-P \nran{separator}O\n")
    layout, documents = read(path)
    (sentence,) = documents[0].sentences
    assert sentence.tags == ("B-P", "O")
    added = [line.split(separator) for line in with_tags(sentence, ["O", "O"], layout)][:2]
    assert [len(columns) for columns in added] == [3, 3]


def test_in_a_file_of_characters_alone_a_blank_is_one_of_them(tmp_path):
    path = write(tmp_path, "비\n \n온\n\n# \n#\n다\n")
    layout = open_tagged(path)._replace(whole_lines=True)
    documents = list(read_documents(layout, whole=True))
    assert items(documents) == [[("비", " ", "온")], [("#", "다")]]
    assert list(with_tags(documents[0].sentences[0], "OOO", layout))[1] == " \tO"


LINES = st.sampled_from(
    ["", "-DOCSTART-\tO", "## 1\tIt", "\n# x", "It\tO", "B\tB-X", "\u2028\tO", "#\tO", "-DOCSTART-"]
)


@given(st.lists(LINES, max_size=12), st.booleans())
def test_words_are_lost_nowhere(tmp_path_factory, lines, whole):
    lines = [*lines, "end\tO"]
    path = write(tmp_path_factory.mktemp("lines"), "\n".join(lines) + "\n")
    layout, documents = read(path, whole=whole)
    sentences = [sentence for document in documents for sentence in document.sentences]
    again = [line for one in sentences for line in with_tags(one, one.tags, layout)]
    counted = ("It\tO", "B\tB-X", "\u2028\tO", "#\tO", "end\tO")
    added = [f"{line}\t{line.split(chr(9))[1]}" for line in lines if line in counted]
    assert [line for line in again if line and not line.startswith("-DOCSTART-")] == added


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("It\tO\nrains\n", "line 2 has 1 columns where others have 2 .between tabs."),
        ("It\tO\n# rain\nrains\tO\n", "line 2 has 1 columns where others have 2"),
        ("It\tO\n\tO\n", "line 2 has an empty word"),
        ("It\tO\nrains\t \n", "line 2 has an empty tag"),
        ("It O\rrains O\r\rSo O\r", "line 1 has a carriage return in it"),
        ("\n\n# only\n-DOCSTART- O\n", "has no words"),
    ],
)
def test_a_line_that_is_no_word_is_named(tmp_path, text, sentence):
    with pytest.raises(UserError, match=sentence):
        read(write(tmp_path, text))


@pytest.mark.parametrize("column", [3, -2])
def test_a_column_that_is_not_there_is_named(tmp_path, column):
    with pytest.raises(UserError, match=f"has 2 columns, but `tag_column` is {column}"):
        read(write(tmp_path, "It O\n"), tag_column=column)


def test_what_stands_before_the_first_mark_of_a_file_is_one_document(tmp_path):
    """As what stands behind each one is."""
    text = "It O\n\nrains O\n\n{}So O\n\nit O\n"
    with_mark = write(tmp_path, text.format("-DOCSTART- O\n\n"))
    assert items(read(with_mark)[1]) == [[("It",), ("rains",)], [("So",), ("it",)]]
    assert items(read(write(tmp_path, text.format("")))[1]) == [
        [("It",)], [("rains",)], [("So",)], [("it",)]
    ]  # fmt: skip


SHORT = """; 김하나 씨는 서울에 산다.
$<김하나:PS> 씨는 <서울:LC>에 산다.
1\t김\tNNP\tB_PS
1\t하나\tNNP\tI
1\t씨\tNNB\tO
2\t서울\tNNP\tB_LC
2\t에\tJKB\tO

; 3월
$<3월:DT>
1\t$\tSW\tO
1\t3월\tNNG\tB_DT
"""


def test_remarks_with_other_marks_stand_before_sentences_and_lack_columns(tmp_path):
    _, documents = read(write(tmp_path, SHORT), word_column=2)
    assert [s.items[0] for d in documents for s in d.sentences] == ["김", "$"]
    # In CoNLL's own files the mark is a word, wherever it stands.
    for text in ("$ $ O\n2 CD O\n; : O\n", "2 CD O\n\n$ $ O\n; : O\n", "2\n\n$\n"):
        _, documents = read(write(tmp_path, text))
        words = [x for d in documents for s in d.sentences for x in s.items]
        assert words == [line.split()[0] for line in text.split("\n") if line]
    with pytest.raises(UserError, match="line 2 has 1 columns"):
        read(write(tmp_path, "2\tO\n; a\nb\tO\n"))


def test_tags_of_letters_before_types_and_a_bare_letter_are_spelled_out(tmp_path):
    path = write(tmp_path, SHORT)
    layout = open_tagged(path, word_column=2)
    assert layout.width == 4
    first, second = (s for d in read_documents(layout, whole=True) for s in d.sentences)
    assert first.tags == ("B-PS", "I-PS", "O", "B-LC", "O")
    assert second.tags == ("O", "B-DT")


NAVER = "김수로 는 왔다 .\tPER-B O O O\n서울 시 로\tLOC-B LOC-I O\n\n넷\tO\n"


def test_a_sentence_a_line_with_its_tags_behind(tmp_path):
    notes = Notes(Counted)
    path = write(tmp_path, NAVER + "둘 셋\tO\n")
    layout = open_tagged(path)
    sentences = list(read_sentences(layout, notes))
    assert [one.items for one in sentences][:2] == [
        ("김수로", "는", "왔다", "."),
        ("서울", "시", "로"),
    ]
    assert [one.tags for one in sentences][1:] == [("B-LOC", "I-LOC", "O"), ("O",)]
    assert list(with_tags(sentences[2], ["O"], layout)) == ["넷\tO\tO", ""]
    assert [(x.count, x.first) for x in notes.values()] == [(1, "on line 5")]


def test_types_alone_may_stand_behind_a_sentence(tmp_path):
    _, documents = read(write(tmp_path, "Ada ran\tPER O\nBob Ray met\tPER PER O\n"))
    assert [one.sentences[0].tags for one in documents] == [("PER", "O"), ("PER", "PER", "O")]


def test_label_studios_columns(tmp_path):
    text = "-DOCSTART- -X- O\nAda -X- _ B-PER\nran -X- _ O\n\nIt -X- _ O\n"
    _, documents = read(write(tmp_path, text))
    assert items(documents) == [[("Ada", "ran"), ("It",)]]
    assert documents[0].sentences[0].tags == ("B-PER", "O")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Sentence #,Word,Tag\nSentence: 1,Ada,B-PER\n,ran,O\n", "is CSV"),
        ("<!DOCTYPE html><p>Ada", "is HTML or XML"),
        ('{"tokens": ["Ada"], "ner_tags": [1]}\n', "is JSON of tokens, ner_tags"),
        ('[{"text": "good", "label": "pos"}]', "is JSON of text, label"),
        ('{"text": "good", "label": ["pos"]}\n', "is JSON of text, label"),
        ('{"text": "Ada", "label": 1', "is not JSON"),
        ('{"version": "v2.0", "data": [{"title": "a"}]}', "is JSON of version, data"),
        ("[{}]", "is JSON of "),
    ],
)
def test_other_files_are_refused_by_what_they_are(tmp_path, text, what):
    with pytest.raises(UserError, match=what):
        read(write(tmp_path, text))
