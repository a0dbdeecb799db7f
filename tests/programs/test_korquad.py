"""All of KorQuAD's dev set through features, answers and its metric, without a training."""

from itertools import islice

import numpy as np
import pytest

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from tests.support.squad_files import question_task


def logits_at(rows, positions):
    """High at one position of each row, 0 elsewhere: [tokens of all rows]."""
    logits = np.zeros(int(rows.lengths.sum()), np.float32)
    logits[rows.offsets()[:-1] + positions] = 9.0
    return logits


@pytest.mark.data
def test_marked_answers_come_back_as_they_stand_in_the_text(data_folder):
    path = data_folder / "korean" / "KorQuAD_v1.0_dev.json.xz"
    vocabulary = Vocabulary.load(data_folder / "vocab" / "bert-base-multilingual-cased-vocab.txt")
    text = TextSettings(vocabulary, do_lower_case=False)
    task = question_task(text, train_file=path, predict_file=path, metric="korquad")
    tokenizer, answered, as_in_text = Tokenizer(text), [], 0
    examples = iter(task.examples("train"))
    while questions := list(islice(examples, 500)):
        marked = task.training_rows(questions, tokenizer, 384)
        rows = task.rows(questions, tokenizer, 384)  # the same windows
        outputs = {
            f"{name}_logits": logits_at(rows, marked.values[f"{name}_positions"])
            for name in ("start", "end")
        }
        for question, prediction in zip(
            questions, task.answers(questions, rows, outputs), strict=True
        ):
            answered.append((question, prediction))
            best = prediction.best()
            found = question.passage.text[best.start : best.end]
            as_in_text += question.answers[0].text in found
    assert len(answered) == 5774
    assert as_in_text > 0.99 * len(answered)
    figures = task.score(answered)
    assert figures["f1"] > 95
    assert figures["f1_low"] < figures["f1"] < figures["f1_high"]
