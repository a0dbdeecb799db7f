import numpy as np
import pytest

from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics.guessing import guesses_of
from pipelines.records.rows import Rows
from pipelines.tables.columns import Columns
from pipelines.tables.files import TableFile, open_table
from pipelines.tasks.labels.labelling import Labelling, Source
from pipelines.tasks.labels.own_texts import LabelledTexts

LABELS = {"one": ("ham", "spam"), "several": ("rude", "toxic"), "number": ()}
LOGITS = np.array([[2.0, -1.0], [0.5, 1.0], [3.0, -3.0]], np.float32)
TRUE = {
    "one": ["ham", "ham", "spam"],
    "several": ['["rude"]', '["rude", "toxic"]', '["toxic"]'],
    "number": ["2.5", "0.5", "-1"],
}


def answered(kind):
    """A task of this kind, and three examples with the answers of `LOGITS`."""
    file = TableFile("dev.csv", "csv", ("text", "label"))
    source = Source(file, Columns("text", None, ("label",)), Labelling(kind, ("label",)))
    task = LabelledTexts(kind, LABELS[kind], {"dev": source})
    examples = [TextExample(str(n + 2), f"text {n}", None, t) for n, t in enumerate(TRUE[kind])]
    rows = Rows(np.arange(3), np.ones(3, np.int64), {})
    logits = LOGITS if kind != "number" else LOGITS[:, :1]
    return task, list(zip(examples, task.answers(examples, rows, {"logits": logits}), strict=True))


def rows_of(path):
    return [record.values for record in open_table(str(path)).records()]


def test_classes_have_accuracy_f1_and_matthews(tmp_path):
    task, pairs = answered("one")
    assert task.score(pairs) == pytest.approx(
        {"accuracy": 1 / 3, "macro_f1": 0.25, "micro_f1": 1 / 3, "matthews_correlation": -0.5}
    )


def test_several_labels_have_accuracy_and_f1():
    task, pairs = answered("several")
    scores = task.score(pairs)
    assert scores == pytest.approx({"accuracy": 2 / 3, "macro_f1": 11 / 15, "micro_f1": 0.75})


def test_numbers_have_both_correlations_and_both_errors():
    task, pairs = answered("number")
    scores = task.score(pairs)
    assert scores["mean_squared_error"] == pytest.approx((0.25 + 0 + 16) / 3)
    assert scores["mean_absolute_error"] == pytest.approx((0.5 + 0 + 4) / 3)
    assert set(scores) > {"pearson", "spearman"}


def test_predictions_have_the_text_the_label_and_probabilities(tmp_path):
    task, pairs = answered("one")
    predictions, mistakes = task.write(tmp_path, "dev", pairs)
    rows = rows_of(predictions)
    assert rows[0] == {
        "line": "2",
        "text": "text 0",
        "label": "ham",
        "prediction": "ham",
        "probability": "0.952574127",
        "P(ham)": "0.952574127",
        "P(spam)": "0.0474258732",
    }
    # The surest mistake first.
    assert [row["line"] for row in rows_of(mistakes)] == ["4", "3"]


@pytest.mark.parametrize(("kind", "order"), [("several", ["4"]), ("number", ["4", "2", "3"])])
def test_the_hardest_mistakes_come_first(tmp_path, kind, order):
    task, pairs = answered(kind)
    _, mistakes = task.write(tmp_path, "dev", pairs)
    assert [row["line"] for row in rows_of(mistakes)] == order


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        ("one", "always the most frequent class", {"accuracy": 2 / 3, "matthews_correlation": 0}),
        ("several", "always the labels that most examples have", {"accuracy": 1 / 3}),
        ("number", "always the mean", {"loss": np.var([2.5, 0.5, -1])}),
    ],
)
def test_what_guessing_reaches_has_words_and_a_value(monkeypatch, kind, words, expected):
    task, pairs = answered(kind)
    monkeypatch.setattr(LabelledTexts, "examples", lambda *_: (example for example, _ in pairs))
    guesses = guesses_of(task, "dev")
    assert {guess.words for guess in guesses.values()} == {words}
    values = {name: guess.value for name, guess in guesses.items()}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    if kind == "number":  # no correlation with a constant is defined
        assert set(values) == {"loss", "mean_squared_error", "mean_absolute_error"}
        assert values["mean_squared_error"] == pytest.approx(values["loss"])
