"""Words of texts, beside those of the graph; entities marked by annotation tools, read again."""

import itertools
import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.encodings import UTF_8
from pipelines.metrics.entities import Entity
from pipelines.tasks.tagging.answers import laid_out
from pipelines.tasks.tagging.files import open_tagged, read_documents
from pipelines.tasks.tagging.schemes import IOB2
from pipelines.tasks.tagging.served import text_characters
from pipelines.tasks.tagging.texts import (
    BLANKS,
    MARKS,
    RARE_BLANKS,
    Counted,
    cuts_words,
    items_of,
    read_marked_texts,
)
from tests.support.tokenization import trouble_text

ODD = st.text(st.sampled_from([*"ab각", *BLANKS, *RARE_BLANKS[:3], *MARKS]), max_size=30)


@example("\n:", False)
@given(st.one_of(ODD, trouble_text()), st.booleans())
def test_words_are_those_of_the_graph(text, split_marks):
    text = text.encode("utf-8", "ignore").decode()
    found = text_characters([text], split_marks=split_marks)
    expected = np.stack([found.word_start, found.word_end], axis=1).tolist()
    lines = items_of(text, "words", split_marks=split_marks)
    assert [list(span) for line in lines for span in line] == expected
    line_of = found.line.numpy()  # a line break counts to the line that it begins
    for number, line in enumerate(lines, start=-int(text.startswith("\n"))):
        assert all(line_of[start] == line_of[0] + number for start, _ in line)


TEXT = "😀 Ada Byron (London)\nmet Bob."
ENTITIES = (Entity("PER", 2, 11), Entity("LOC", 13, 19), Entity("PER", 25, 28))


def doccano(text, entities):
    return {"id": 7, "text": text, "label": [[x.start, x.end, x.type] for x in entities]}


def doccano_relations(text, entities):
    spans = [
        {"id": 1, "label": x.type, "start_offset": x.start, "end_offset": x.end} for x in entities
    ]
    return {"text": text, "entities": spans, "relations": [], "Comments": []}


def doccano_once(text, entities):
    spans = [
        {"label": x.type, "start_offset": x.start, "end_offset": x.end, "user": 1} for x in entities
    ]
    return {"data": text, "meta": {}, "annotations": spans}


def value(text, x, units):
    """A span with its text, in characters or as JavaScript counts them."""
    start, end = (len(text[:at].encode("utf-16-le")) // 2 if units else at for at in x[1:])
    own = text[x.start : x.end].replace("\n", "\\n")
    return {"start": start, "end": end, "text": own, "labels": [x.type]}


def label_studio(text, entities, units=False):
    result = [
        {"value": value(text, x, units), "from_name": "label", "type": "labels"} for x in entities
    ]
    choice = {"value": {"choices": ["news"]}, "type": "choices"}
    done = {"id": 1, "was_cancelled": False, "result": [choice, *result]}
    cancelled = {"id": 2, "was_cancelled": True, "result": []}
    return {"id": 7, "data": {"id": 3, "text": text}, "annotations": [cancelled, done]}


def label_studio_min(text, entities):
    spans = [value(text, x, False) for x in entities]
    return {"id": 7, "text": text, "ner": spans, "annotator": 1, "annotation_id": 1}


FORMS = {
    "doccano": doccano,
    "doccano_relations": doccano_relations,
    "doccano_once": doccano_once,
    "label_studio": label_studio,
    "label_studio_utf16": lambda *given: label_studio(*given, units=True),
    "label_studio_min": label_studio_min,
}


def write(path, records, form="doccano"):
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)
    is_list = form.startswith("label_studio")
    path.write_text(json.dumps(records, indent=2) if is_list else lines, encoding="utf-8")
    return path


def documents(path, *, whole=True, characters=False):
    notes = defaultdict(Counted)
    layout = open_tagged(path)._replace(whole_lines=characters)
    return list(read_documents(layout, whole=whole, notes=notes)), notes


def found_in(document):
    """The entities of a document in its text."""
    _, places = laid_out(document, "words")
    return [
        Entity(x.type, spans[x.start][0], spans[x.end - 1][1])
        for sentence, spans in zip(document.sentences, places, strict=True)
        for x in IOB2.entities(sentence.tags)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_tools_gives_the_same_words_and_tags(tmp_path, form):
    path = write(tmp_path / "export.json", [FORMS[form](TEXT, ENTITIES)], form)
    (document,), notes = documents(path)
    assert document.text == TEXT
    assert [sentence.items for sentence in document.sentences] == [
        ("😀", "Ada", "Byron", "(", "London", ")"),
        ("met", "Bob", "."),
    ]
    assert document.sentences[0].tags == ("O", "B-PER", "I-PER", "O", "B-LOC", "O")
    assert document.sentences[1].lines == ("met\tO", "Bob\tB-PER", ".\tO")
    assert found_in(document) == list(ENTITIES)
    assert not notes
    lines, _ = documents(path, whole=False)
    assert [one.sentences for one in lines] == [(one,) for one in document.sentences]


@st.composite
def marked(draw):
    """Words with entities over some of them; in the text of a line."""
    words = draw(st.lists(st.text("aé가😀-", min_size=1, max_size=3), min_size=1, max_size=8))
    starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
    borders = sorted(draw(st.sets(st.integers(0, len(words)), max_size=4)))
    spans = [pair for pair in itertools.pairwise(borders) if draw(st.booleans())]
    kinds = st.sampled_from(["PER", "work of art", "인물"])
    return " ".join(words), [Entity(draw(kinds), starts[a], starts[b] - 1) for a, b in spans]


@settings(max_examples=60)
@given(st.lists(marked(), min_size=1, max_size=3), st.sampled_from(sorted(FORMS)), st.booleans())
def test_what_is_marked_is_read_again(tmp_path_factory, made, form, characters):
    path = tmp_path_factory.mktemp("marked") / "export.jsonl"
    records = [{**FORMS[form](*one), "id": number} for number, one in enumerate(made)]
    if not any(entities for _, entities in made):
        return  # a file without spans is one to be tagged
    if form == "label_studio_utf16":  # whose places may hold the same words in characters, too
        spans = [(text, x, value(text, x, True)) for text, some in made for x in some]
        moved = [(text, one) for text, x, one in spans if one["start"] != x.start]
        assume(all(text[one["start"] : one["end"]] != one["text"] for text, one in moved))
    read, notes = documents(write(path, records, form), characters=characters)
    assert [(one.text, found_in(one)) for one in read] == made
    empty = sum(not entities for _, entities in made)
    assert sum(note.count for note in notes.values()) == empty


def studio(**changes):
    return {**label_studio("Ada ran", [Entity("PER", 0, 3)]), **changes}


LABELLED = {"text": "Ada ran", "label": [[0, 3, "PER"]]}
ODDITIES = [
    ([[0, 7, "PER"], [4, 7, "X"]], "spans that overlap another one or are inside it"),
    ([[4, 9, "PER"]], "spans outside of their text"),
    ([[3, 3, "PER"]], "spans outside of their text"),
    ([["0", "3", "PER"]], None),
    ([[0, 2, "PER"]], "spans that begin or end inside a word"),
    ([], "texts without a span"),
]


@pytest.mark.parametrize(("spans", "what"), ODDITIES)
def test_what_cannot_be_learned_is_counted_with_its_first_line(tmp_path, spans, what):
    path = write(tmp_path / "odd.jsonl", [LABELLED, {"text": "Bob ran", "label": spans}])
    if what is None:
        with pytest.raises(UserError, match="line 2 has no list of spans with start, end and type"):
            documents(path)
        return
    _, notes = documents(path)
    ((note, counted),) = notes.items()
    assert note.startswith(what)
    assert (counted.count, counted.first) == (1, "on line 2")


def test_a_span_over_two_lines_is_left_out(tmp_path):
    text = {"text": "Ada\nran", "label": [[0, 5, "PER"], [4, 7, "ACT"]]}
    (document,), notes = documents(write(tmp_path / "odd.jsonl", [text]))
    assert [one.tags for one in document.sentences] == [("O",), ("O",)]
    assert {note.split(" (")[0]: x.count for note, x in notes.items()} == {
        "spans that overlap another one or are inside it": 1,
        "spans over the end of a line": 1,
    }


def test_cancelled_and_unannotated_tasks_and_second_annotators_are_counted(tmp_path):
    twice = studio()["annotations"][1]
    tasks = [
        studio(),
        studio(annotations=[{"was_cancelled": True, "result": []}]),
        studio(annotations=[]),
        studio(annotations=[twice, {**twice, "result": []}]),
    ]
    read, notes = documents(write(tmp_path / "tasks.json", tasks, "label_studio"))
    assert len(read) == 2
    assert {note.split(" (")[0]: x.count for note, x in notes.items()} == {
        "texts that are cancelled or not annotated": 2,
        "texts with several annotations": 1,
    }
    again = [{**label_studio_min("Ada ran", [Entity("PER", 0, 3)]), "annotator": n} for n in (1, 2)]
    read, notes = documents(write(tmp_path / "min.json", again, "label_studio"))
    assert len(read) == 1
    assert [x.count for x in notes.values()] == [1]


def test_parts_of_words_are_tagged_by_characters(tmp_path):
    korean = [{"text": "서울에 왔다", "label": [[0, 2, "LC"]]}]
    assert cuts_words(write(tmp_path / "ko.jsonl", korean), UTF_8)
    assert not cuts_words(write(tmp_path / "en.jsonl", [LABELLED]), UTF_8)


def test_a_text_may_have_any_name_if_it_is_the_only_one(tmp_path):
    spans = [value("Ada ran", Entity("PER", 0, 3), False)]
    mine = {"id": 7, "sentence": "Ada ran", "ner": spans, "created_at": "2026"}
    ((document,), _) = documents(write(tmp_path / "min.json", [mine], "label_studio"))
    assert document.text == "Ada ran"
    with pytest.raises(UserError, match="JSON of id, sentence, ner, created_at, other"):
        documents(write(tmp_path / "min.json", [{**mine, "other": "text"}], "label_studio"))


def test_spans_of_another_kind_are_counted(tmp_path):
    span = {"type": "hypertextlabels", "value": {"start": "/p[1]", "hypertextlabels": ["PER"]}}
    page = studio(annotations=[{"result": [span]}])
    _, notes = documents(write(tmp_path / "html.json", [studio(), page], "label_studio"))
    assert [(note.split(",")[0], x.count) for note, x in notes.items()] == [
        ("spans outside of their text", 1)
    ]


def test_texts_without_annotations_are_read_to_be_tagged(tmp_path):
    for name, record in {"a": {"text": "Ada ran"}, "b": {"data": {"text": "Ada ran"}}}.items():
        path = write(tmp_path / f"{name}.jsonl", [record])
        assert open_tagged(path).tag is None
        ((document,), _) = documents(path)
        assert document.sentences[0].tags is None
    assert [one.text for one in read_marked_texts(path, UTF_8, labelled=False)] == ["Ada ran"]
