"""From units to tags and entities: windows joined, words whole, offsets in the text."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.records.rows import Rows
from pipelines.tasks.tagging.answers import Units, answer, laid_out, units_of
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.schemes import IOB2
from pipelines.tasks.tagging.task import TaggingTask
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

LABELS = ("O", "B-PER", "I-PER")


def sentence(items, first=1):
    return Sentence(tuple(items), None, tuple(items), tuple(range(first, first + len(items))))


def units(*entries):
    """Units of (start, end, tag, score)."""
    start, end, tags, scores = zip(*entries, strict=True)
    numbers = [LABELS.index(tag) for tag in tags]
    return Units(*(np.array(x) for x in (start, end, numbers)), np.array(scores, np.float32))


def test_words_have_tags_and_entities_offsets_in_the_documents_text():
    document = Document((sentence(["Ada", "Byron", "met"]), sentence(["her"])))
    found = units(
        (0, 1, "B-PER", 0.5), (1, 2, "I-PER", 1.0), (2, 3, "O", 1.0), (3, 4, "I-PER", 0.25)
    )
    given = answer(document, found, LABELS, IOB2, "words")
    assert given.tags == [["B-PER", "I-PER", "O"], ["I-PER"]]
    assert given.entities == [("PER", "Ada Byron", 0, 9, 0.75), ("PER", "her", 14, 17, 0.25)]
    text = laid_out(document, "words")[0]
    assert [text[x.start : x.end] for x in given.entities] == ["Ada Byron", "her"]


def test_a_word_without_a_token_is_outside():
    document = Document((sentence(["Ada", "\u200b", "Byron"]),))
    found = units((0, 1, "B-PER", 1.0), (2, 3, "I-PER", 1.0))
    given = answer(document, found, LABELS, IOB2, "words")
    assert given.tags == [["B-PER", "O", "I-PER"]]
    assert [x.text for x in given.entities] == ["Ada", "Byron"]


def test_an_entity_of_characters_has_the_blanks_inside_it():
    document = Document((sentence("김 수와"), sentence("김")))
    found = units((0, 1, "B-PER", 1.0), (2, 3, "I-PER", 0.5), (3, 4, "O", 1.0), (4, 5, "B-PER", 1))
    given = answer(document, found, LABELS, IOB2, "characters")
    assert given.tags == [["B-PER", "I-PER", "I-PER", "O"], ["B-PER"]]
    assert given.entities == [("PER", "김 수", 0, 3, 0.75), ("PER", "김", 5, 6, 1.0)]
    assert laid_out(document, "characters")[0] == "김 수와\n김"


ENDS = st.lists(st.integers(0, 2), min_size=1, max_size=8)


@over(ENDS, st.data())
def test_entities_of_characters_are_those_of_the_tags_even_where_tokens_share_one(sizes, data):
    spans, end = list[tuple[int, int]](), 0
    for size in sizes:  # a token may begin in the last character of the one in front, or be it
        start = max(0, end - data.draw(st.integers(0, 1)))
        end = max(start + 1, end, start + size)
        spans.append((start, end))
    labels = [data.draw(st.sampled_from(LABELS)) for _ in spans]
    text = "가" * end
    found = units(*((*span, label, 1.0) for span, label in zip(spans, labels, strict=True)))
    answered = answer(Document((sentence(text),)), found, LABELS, IOB2, "characters")
    of_tags = [(x.type, x.start, x.end) for x in IOB2.entities(answered.tags[0])]
    assert of_tags == [(x.type, x.start, x.end) for x in answered.entities]


def test_units_are_taken_from_the_window_that_owns_them():
    tokens = {
        "unit_start": np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0], np.int32),
        "unit_end": np.array([0, 1, 0, 0, 0, 2, 0, 0, 1, 0], np.int32),
    }
    rows = Rows(np.array([0, 0, 2]), np.array([4, 3, 3]), tokens)
    logits = np.zeros([10, 3], np.float32)
    logits[1, 1] = logits[5, 2] = logits[8, 0] = 9.0
    logits[2, 2] = 99.0  # nobody's
    first, none, last = units_of(rows, logits)
    assert (first.start.tolist(), first.label.tolist()) == ([0, 1], [1, 2])
    assert (len(none.start), last.label.tolist()) == (0, [0])
    probability = np.exp(9) / (np.exp(9) + 2)
    np.testing.assert_allclose(first.score, [probability, probability], rtol=1e-6)


PETS = ("O", "B-PET", "I-PET")


def forms(unit="words", labels=PETS, ours=True):
    settings = {"task": "ner", "tagging_scheme": "iob2", "tag_unit": unit, "doc_stride": 2}
    extra = {"id2label": {str(n): label for n, label in enumerate(labels)}}
    config = tiny_config().replace(extra=extra)
    config = with_task_settings(config, settings) if ours else config
    model = SimpleNamespace(config=config, text=TextSettings(WORD_VOCABULARY), labels=labels)
    return {one.signature: one for one in TaggingTask.of_model(config).forms(model, None)}


def entities(form, text):
    """Where "dog" begins a pet, and "cat" goes on with one."""
    prepared = form.prepare([{"text": text}])
    tags = np.zeros(len(WORD_VOCABULARY), np.int64)
    tags[[WORD_VOCABULARY.id_of("dog"), WORD_VOCABULARY.id_of("cat")]] = [1, 2]
    logits = [np.eye(3, dtype=np.float32)[tags[row["input_ids"]]] * 9 for row in prepared.rows]
    (answer,) = form.finish(prepared, [{"logits": one} for one in logits])
    assert answer["count"] == len(answer["text"])
    assert answer["text"] == [
        text[start:end] for start, end in zip(answer["start"], answer["end"], strict=True)
    ]
    return [*zip(answer["type"], answer["text"], answer["start"], strict=True)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("  the  dog   cat runs", [("PET", "dog   cat", 7)]),
        ("dog\ncat", [("PET", "dog", 0), ("PET", "cat", 4)]),  # a line ends an entity
        ("\u200fdog\u200b 😀 cat", [("PET", "\u200fdog\u200b", 0), ("PET", "cat", 8)]),
        ("dog \u200b cat", [("PET", "dog", 0), ("PET", "cat", 6)]),  # a word of nothing between
        ("the a " * 20 + "dog cat", [("PET", "dog cat", 120)]),
    ],
)
def test_entities_stand_where_the_text_has_them(text, found):
    assert entities(forms()["text"], text) == found


def test_marks_at_the_ends_of_words_are_apart_in_raw_text():
    assert entities(forms()["text"], "(dog),") == []
    assert entities(forms()["raw_text"], "(dog),") == [("PET", "dog", 1)]


def test_characters_of_an_entity_are_together():
    assert entities(forms("characters")["text"], "the dogs") == [("PET", "dog", 4)]


@pytest.mark.parametrize(
    "labels",
    [
        ("O", "B-PET", "I-PET", "[CLS]", "[SEP]", "X", "<pad>"),
        ("O", "PET-B", "PET-I", "[PAD]"),
        ("O", "B_PET", "I_PET"),
        ("[PAD]", "S-PET", "I-PET", "B-PET", "E-PET", "O"),
    ],
)
def test_a_published_models_labels_are_tags_whatever_others_stand_beside_them(labels):
    form = forms(labels=labels, ours=False)["raw_text"]
    assert entities(form, "the dog cat runs") == [("PET", "dog cat", 4)]


def test_a_label_of_no_entity_that_wins_is_outside():
    form = forms(labels=("B-PET", "[SEP]", "X"), ours=False)["text"]
    assert entities(form, "dog cat") == []


@pytest.mark.parametrize("labels", [(), ("LABEL_0", "LABEL_1", "LABEL_2")])
def test_labels_without_names_are_refused(labels):
    with pytest.raises(UserError, match=r"its labels have no names .*write the tags .*`id2label`"):
        forms(labels=labels, ours=False)
