"""Questions asked without a model: also where nothing, or nothing much, can be found."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.tasks.questions.task import QuestionTask
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

PASSAGE = "the dog\u200b  runs . a cat sleeps"


def form(best=False, **settings):
    model = SimpleNamespace(
        config=with_task_settings(
            tiny_config(), {"max_query_length": 2, "doc_stride": 3, "n_best_size": 5, **settings}
        ),
        text=TextSettings(WORD_VOCABULARY),
    )
    return QuestionTask().forms(model, None)[best]


def answer(form, passage, start, end, null=0.0):
    """The answer where one token is the best start, and one the best end, of every window."""
    prepared = form.prepare([{"question": "the ?", "passage": passage}])
    outputs = []
    for row in prepared.rows:
        ids = row["input_ids"]
        logits = [
            np.where(ids == WORD_VOCABULARY.id_of(word), 5.0, -5.0).astype(np.float32)
            for word in (start, end)
        ]
        for one in logits:
            one[0] = null
            one[: int(np.argmax(ids == WORD_VOCABULARY.sep_id))][1:] = -9.0
        outputs.append({"start_logits": logits[0], "end_logits": logits[1]})
    return form.finish(prepared, outputs)[0]


def test_an_answer_is_the_passages_own_characters():
    found = answer(form(), PASSAGE, "dog", "runs")
    assert (found["answer"], found["start"], found["end"]) == ("dog\u200b  runs", 4, 14)
    assert (found["score"], found["no_answer_score"]) == (10.0, 0.0)
    alone = answer(form(), PASSAGE, "dog", "dog")
    assert (alone["answer"], alone["end"]) == ("dog", 7)  # what vanishes ends no answer


def test_runners_up_come_with_their_places():
    found = answer(form(best=True), PASSAGE, "a", "sleeps")
    assert found["answers"][0] == "a cat sleeps"
    assert found["answer_counts"] == len(found["starts"]) == len(found["scores"]) > 1
    places = zip(found["answers"], found["starts"], found["ends"], strict=True)
    assert all(PASSAGE[start:end] == text for text, start, end in places)


@pytest.mark.parametrize(("threshold", "said"), [(-20.0, ""), (0.0, "dog")])
def test_the_threshold_of_the_model_decides_whether_there_is_an_answer(threshold, said):
    settings = {"version_2_with_negative": True, "null_score_diff_threshold": threshold}
    assert answer(form(**settings), PASSAGE, "dog", "dog")["answer"] == said
    assert answer(form(best=True, **settings), PASSAGE, "dog", "dog")["has_answer"] is bool(said)


def test_a_passage_without_tokens_has_no_answer():
    found = answer(form(), " \u200b", "dog", "dog", null=1.0)
    assert found == {
        "answer": "",
        "start": 0,
        "end": 0,
        "start_utf16": 0,
        "end_utf16": 0,
        "score": 2.0 - 1e6,
        "no_answer_score": 2.0,
    }
