import csv
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.heads import as_label_list
from pipelines.fine_tuning.start import with_kept_options
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.labels.task import balanced_weights, parse_weights
from tests.support.labelled_files import write_classes, write_several
from tests.support.opened_tasks import open_labelled_texts


def trained_on(task, labels):
    """What a model directory says of the task that it was trained for."""
    config = with_task_settings(task.configure(BertConfig(vocab_size=9)), dict(task.settings))
    several = config.extra["problem_type"] == "multi_label_classification"
    return SimpleNamespace(
        checkpoint=Path("trained"),
        config=config,
        labels=labels,
        is_multi_label=several,
        found_text=None,
    )


def table(path, *rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def open_files(train=None, dev=None, test=None, **options):
    files = {"train_file": train, "dev_file": dev, "test_file": test}
    given = {name: str(path) for name, path in files.items() if path}
    return open_labelled_texts(LabelledTextsConfig(**given, **options))


def open_trained(trained, **options):
    """The task of a model that is evaluated: what it keeps holds."""
    own = LabelledTextsConfig(**options)
    config = with_kept_options(RunClassifierConfig(output_dir=Path("run"), own=own), trained)
    return open_labelled_texts(config.own, config.long_texts, trained)


@pytest.fixture
def train(tmp_path):
    return write_classes(tmp_path / "train.csv", 30)


def test_classes_are_found_in_the_training_file(train, tmp_path):
    task = open_files(train, write_classes(tmp_path / "dev.csv", 9, seed=4))
    assert (task.kind, task.labels) == ("one", ("bad", "good", "so-so"))
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev"])
    examples = list(task.examples("train"))
    assert len(examples) == 30
    assert (examples[0].identifier, examples[0].label) == ("2", "good")
    assert "\n" in examples[0].text_a


def test_several_labels_are_found_in_lists(tmp_path):
    task = open_files(write_several(tmp_path / "train.jsonl", 12))
    assert (task.kind, task.labels) == ("several", ("no dog", "the"))
    assert [e.label for e in task.examples("train")][:3] == [
        '["the", "no dog"]',
        '["no dog"]',
        "[]",
    ]


def test_a_dev_share_cuts_each_row_to_one_side(train):
    task = open_files(train, dev_share=0.2)
    parts = {split: [e.identifier for e in task.examples(split)] for split in ("train", "dev")}
    assert len(parts["dev"]) == 6
    assert not set(parts["dev"]) & set(parts["train"])
    assert len(parts["dev"]) + len(parts["train"]) == 30
    labels = [example.label for example in task.examples("dev")]
    assert sorted(labels) == ["bad", "bad", "good", "good", "so-so", "so-so"]
    other = open_files(train, dev_share=0.2, dev_seed=1)
    assert [e.identifier for e in other.examples("dev")] != parts["dev"]


def test_a_test_file_with_labels_is_scored_and_one_without_is_not(train, tmp_path):
    labelled = write_classes(tmp_path / "test.csv", 9, seed=5)
    assert open_files(train, test=labelled).evaluation_splits == ["test"]
    bare = table(tmp_path / "bare.csv", ("text",), ("x",))
    stand_ins = table(tmp_path / "stand-ins.csv", ("text", "label"), ("x", "?"), ("y", "?"))
    for unlabelled in (bare, stand_ins):
        task = open_files(train, test=unlabelled)
        assert (task.evaluation_splits, task.test_splits) == ([], ["test"])
        assert next(iter(task.examples("test"))).label is None


@pytest.mark.parametrize(("kind", "stand_in"), [("number", "-1"), ("columns", "")])
def test_stand_ins_for_labels_of_any_kind_are_none(tmp_path, kind, stand_in):
    labels = ("one", "two") if kind == "columns" else ("label",)
    first, second = {"number": (["0.5"], ["2"]), "columns": (["1", "0"], ["0", "1"])}[kind]
    train = table(tmp_path / "train.csv", ["text", *labels], ["a", *first], ["b", *second])
    cells = [stand_in] * len(labels)
    test = table(tmp_path / "test.csv", ["text", *labels], ["x", *cells], ["y", *cells])
    options = {"label_column": labels, "regression": kind == "number"}
    task = open_files(train, test=test, **options)
    assert (task.kind, task.evaluation_splits) == (kind, [])
    assert [example.label for example in task.examples("test")] == [None, None]
    rows = ["x", *first], ["y", *["?" for _ in labels]]
    mixed = table(tmp_path / "mixed.csv", ["text", *labels], *rows)
    with pytest.raises(UserError, match=r"mixed\.csv: line 3"):
        open_files(train, test=mixed, **options)


def test_a_trained_model_knows_its_labels_and_columns(train, tmp_path):
    task = open_files(train, class_weights=("bad=2",))
    trained = trained_on(task, ("bad", "good", "so-so"))
    test = table(tmp_path / "test.csv", ("text", "other"), ("x", "y"))
    config = LabelledTextsConfig(test_file=test)
    again = open_labelled_texts(config, trained=trained)
    assert (again.kind, again.labels, again.class_weights) == ("one", task.labels, (2.0, 1.0, 1.0))
    with pytest.raises(UserError, match="there is no file to evaluate or to predict"):
        open_labelled_texts(LabelledTextsConfig(train_file=str(train)), trained=trained)


@pytest.mark.parametrize(("columns", "odd"), [("ac", "b, c"), ("abc", "c")])
def test_a_model_of_a_column_a_label_is_evaluated_with_all_its_columns(tmp_path, columns, odd):
    rows = ["text", "a", "b", "c"], ["x", "1", "0", "0"], ["y", "0", "1", "0"]
    path = table(tmp_path / "t.csv", *rows)
    trained = trained_on(open_files(path, label_column=("b", "a")), ("b", "a"))
    assert open_trained(trained, dev_file=path, label_column=("a", "b")).kind == "columns"
    with pytest.raises(UserError, match=rf"t\.csv: .* b, a, and no other; .* {odd}"):
        open_trained(trained, dev_file=path, label_column=tuple(columns))


def test_a_file_without_numbers_is_not_evaluated(tmp_path, caplog):
    rows = ("text", "label"), ("x", "1"), ("y", "2")
    train = table(tmp_path / "t.csv", *rows)
    test = table(tmp_path / "u.csv", ("text", "label"), ("x", "?"))
    open_files(train, test=test, regression=True)
    assert f"{test}: has no labels (numbers); not evaluated." in caplog.text


def test_a_header_that_would_be_an_example_is_refused(tmp_path):
    train = table(tmp_path / "t.csv", ("Text", "label"), ("x", "a"), ("y", "b"))
    by_number = {"text_column": "1", "label_column": ("2",)}
    with pytest.raises(UserError, match=r"t.csv: line 1 seems to name the columns \('Text'\)"):
        open_files(train, **by_number)
    assert open_files(train, header=False, **by_number).labels == ("a", "b", "label")


def test_balanced_weights_are_scikit_learns():
    from sklearn.utils.class_weight import compute_class_weight

    labels = ["a"] * 30 + ["b"] * 10 + ["c"] * 5
    expected = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=labels)
    assert balanced_weights("one", [30, 10, 5], 45) == pytest.approx(expected.tolist())


def test_a_label_without_rows_has_a_balanced_weight():
    assert balanced_weights("columns", [30, 0], 40) == pytest.approx((1 / 3, 40))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("spam=3,spam=2", "`class_weights=spam=2`: give .* each once"),
        (
            "eggs=2",
            "`class_weights=eggs=2`: give balanced, or LABEL=WEIGHT, a number more than 0, .* ham",
        ),
        ("spam=0", "`class_weights=spam=0`: give balanced, or LABEL=WEIGHT, a number more than 0"),
    ],
)
def test_weights_that_mean_nothing_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        parse_weights(given.split(","), ["ham", "spam"])


@pytest.mark.parametrize(
    ("problem", "labels", "kind"),
    [
        (None, ("LABEL_0",), "number"),  # as transformers opens it
        ("single_label_classification", ("LABEL_0",), "one"),
    ],
)
def test_a_published_model_of_one_label_gives_numbers(tmp_path, problem, labels, kind):
    extra = {} if problem is None else {"problem_type": problem}
    trained = SimpleNamespace(
        checkpoint=Path("published"),
        config=BertConfig(vocab_size=9, extra=extra),
        labels=labels,
        is_multi_label=False,
        found_text=None,
    )
    path = table(tmp_path / "test.csv", ("text",), ("x",), ("y",))
    assert open_trained(trained, test_file=path).kind == kind


GOOD, BAD = "긍정", "부정"


def apart(text):
    """The same text with its syllables in their letters, as some systems write them."""
    return unicodedata.normalize("NFD", text)


def test_labels_that_look_the_same_are_one_label_in_files_flags_and_models(tmp_path):
    rows = ["text", "label"], ["a", GOOD], ["b", apart(GOOD)], ["c", BAD]
    path = table(tmp_path / "train.csv", *rows)
    weights = (f"{apart(BAD)}=3",)
    task = open_files(path, class_weights=weights)
    assert (task.labels, task.class_weights) == ((GOOD, BAD), (1.0, 3.0))
    assert [example.label for example in task.examples("train")] == [GOOD, GOOD, BAD]
    trained = trained_on(task, (GOOD, BAD))
    again = open_trained(trained, dev_file=path)
    assert [example.label for example in again.examples("dev")] == [GOOD, GOOD, BAD]
    assert again.class_weights == (1.0, 3.0)


@pytest.mark.parametrize(
    ("labels", "cells", "several"),
    [
        (("LABEL_0", "LABEL_1"), ("1", "LABEL_0"), False),
        (("0", "1"), ("LABEL_1", "0"), False),
        (("LABEL_0", "LABEL_1"), ('["1", "0"]', '["LABEL_1"]'), True),
    ],
)
def test_numbers_are_the_labels_that_a_published_model_has_not_named(
    tmp_path, labels, cells, several
):
    kind = "multi_label_classification" if several else "single_label_classification"
    trained = SimpleNamespace(
        checkpoint=Path("published"),
        config=BertConfig(vocab_size=9, extra={"problem_type": kind}),
        labels=labels,
        is_multi_label=several,
        found_text=None,
    )
    path = table(tmp_path / "dev.csv", ("text", "label"), *(("x", cell) for cell in cells))
    found = [example.label for example in open_trained(trained, dev_file=path).examples("dev")]
    first, second = labels
    both = [as_label_list(one) for one in ((second, first), (second,))]
    assert found == (both if several else [second, first])
    path = table(tmp_path / "dev.csv", ("text", "label"), ("x", '["3"]' if several else "3"))
    with pytest.raises(UserError, match="it knows "):
        open_trained(trained, dev_file=path)
