"""Texts asked for their entities without a model: positions in the text as it was given."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.tasks.tagging.task import TaggingTask
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

LABELS = ("O", "B-PET", "I-PET")


def forms(unit="words"):
    settings = {"task": "ner", "tagging_scheme": "iob2", "tag_unit": unit, "doc_stride": 2}
    config = with_task_settings(tiny_config(), settings)
    model = SimpleNamespace(config=config, text=TextSettings(WORD_VOCABULARY), labels=LABELS)
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
