"""Rows that a student learns from: the teacher's outputs, with labels where there are some."""

from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.objectives import ClassificationObjective
from pipelines.fine_tuning import teaching
from pipelines.fine_tuning.counts import RowCounts
from pipelines.fine_tuning.task import Head
from pipelines.fine_tuning.teaching import TaughtTask
from pipelines.fine_tuning.teaching_options import DistillConfig
from pipelines.studies.distill import Distillation
from tests.support.model_folders import WORD_VOCABULARY, write_classifier, write_tagger
from tests.support.tiny_bert import GOLDEN
from tools.table import ToolPrograms

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))
TABLE = "text\tlabel\nthe dog runs\ta\na cat\tb\nthe list\ta\n"
TAGGED = "the O\ndog B-X\n\na O\ncat B-X\nsleeps O\n"
KINDS = {
    "classes": (write_classifier, ["a", "b"], BertClassifier, TABLE, "text\na dog sleeps\nthe\n"),
    "tags": (write_tagger, ["B-X", "O"], BertTokenClassifier, TAGGED, "runs O\na O\n"),
}

KINDS_DEV = {"classes": TABLE, "tags": TAGGED}


def taught_task(folder, kind):
    """A task that learns from rows with labels, then from those without."""
    write, labels, _, text, more = KINDS[kind]
    end = ".tsv" if kind == "classes" else ".txt"
    names = {name: folder / f"{name}{end}" for name in ("train", "more")}
    dev = folder / f"dev{end}"
    for name, content in (("train", text), ("more", more)):
        names[name].write_text(content)
    dev.write_text(KINDS_DEV[kind])
    teacher = folder / "teacher-model"
    if not teacher.is_dir():
        write(teacher, labels)
    config = DistillConfig(
        teacher=str(teacher),
        output_dir=folder / "out",
        train_file=str(names["train"]),
        dev_file=str(dev),
        unlabelled_file=(str(names["more"]),),
        num_layers=(1,),
        label_weight=0.5,
        task_flags="--max_seq_length=12",
    )
    study = Distillation(config, ToolPrograms())
    return TaughtTask(study._task_of(study._known), study._teacher, config, (0,), study._lessons)


def taught(folder, kind):
    """The rows that are trained on."""
    task = taught_task(folder, kind)
    return task.training_rows(list(task.examples("train")), TOKENIZER, 12)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_what_the_teacher_answers(kind, tmp_path):
    rows = taught(tmp_path, kind)
    model = KINDS[kind][2].from_pretrained(tmp_path / "teacher-model")
    features = rows.padded(int(rows.lengths.max()))
    names = ("input_ids", "input_mask", "segment_ids")
    expected = np.array(model({name: features[name] for name in names})["logits"])
    found = features["teacher/logits"]
    if kind == "tags":
        expected = expected * features["input_mask"][..., None]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    labelled = {"classes": [1, 1, 1, 0, 0], "tags": [1, 1, 0]}[kind]
    assert features["labelled"].tolist() == labelled
    assert rows.examples.tolist() == list(range(len(labelled)))


def test_texts_to_learn_from_that_are_evaluated_as_well_are_told(tmp_path, caplog):
    task = taught_task(tmp_path, "classes")
    rows = task.rows([*task.examples("dev")], TOKENIZER, 12)
    lessons, dev = (RowCounts(task, split, WORD_VOCABULARY) for split in ("train", "dev"))
    lessons.add([*task.examples("train")], rows)
    dev.add([*task.examples("dev")], rows)
    caplog.clear()
    lessons.tell(lessons)
    assert not caplog.messages
    dev.tell(lessons)
    files = f"{tmp_path / 'train.tsv'}, {tmp_path / 'more.tsv'}"
    assert f"rows of {files} as well, on which figures say little: all 3" in caplog.text


def test_the_inside_of_a_teacher_is_the_adapted_one(tmp_path):
    golden = GOLDEN / "peft" / "all_linear_rslora"
    source = find_model(golden / "base", adapter=golden / "adapter")
    config = DistillConfig(
        teacher="x", train_file="x", dev_file="x", num_layers=(1,), lessons="relations",
        output_dir=tmp_path,
    )  # fmt: skip
    own = Head(BertClassifier(source.config, 3), ClassificationObjective(), ("logits",))
    task = SimpleNamespace(
        head=lambda *_: own, configure=lambda x: x, restored=lambda *_: None, name="x"
    )
    encoder = TaughtTask(task, source, config, (0,), lambda: iter(())).head(source.config)
    expected = BertEncoder.from_pretrained(golden / "base", adapter=golden / "adapter")
    for one, other in zip(encoder.objective._inner.teacher.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_the_teacher_answered_is_not_computed_again(tmp_path, monkeypatch):
    rows = taught(tmp_path, "classes")
    monkeypatch.setattr(teaching, "compute_outputs", None)
    again = taught(tmp_path, "classes")
    np.testing.assert_array_equal(again.values["teacher/logits"], rows.values["teacher/logits"])


def test_a_teacher_that_was_trained_anew_answers_anew(tmp_path):
    rows = taught(tmp_path, "classes")
    file = tmp_path / "teacher-model" / "model.safetensors"
    save_file({name: -array for name, array in load_file(file).items()}, file)
    again = taught(tmp_path, "classes")
    assert np.any(again.values["teacher/logits"] != rows.values["teacher/logits"])


def test_answers_to_lessons_that_are_no_more_are_not_kept(tmp_path):
    taught(tmp_path, "classes")
    kept = tmp_path / "out" / "teacher"
    ours, other = {*kept.iterdir()}, kept / f"{0:016x}.npz"
    for path in (other, kept / "mine.npz"):
        path.touch()
    task = taught_task(tmp_path, "classes")
    task.training_rows(list(task.examples("train")), TOKENIZER, 12)
    task.forget_other_answers()
    assert {*kept.iterdir()} == {*ours, kept / "mine.npz"}


def test_damaged_answers_are_computed_again(tmp_path):
    rows = taught(tmp_path, "classes")
    for kept in (tmp_path / "out" / "teacher").iterdir():
        kept.write_bytes(kept.read_bytes()[:100])
    again = taught(tmp_path, "classes")
    np.testing.assert_array_equal(again.values["teacher/logits"], rows.values["teacher/logits"])


@pytest.mark.parametrize(
    ("named", "expected"), [((), ["accuracy", "f1"]), (("f1", "accuracy"), ("f1", "accuracy"))]
)
def test_figures_of_the_task_say_what_is_best(named, expected, tmp_path):
    task = SimpleNamespace(
        compared_figures=named,
        evaluation_splits=["dev"],
        guessing=lambda split: SimpleNamespace(answered=split),
        score=lambda answered: {"dev": {"accuracy": 0.5, "f1": 0.5}}[answered],
    )
    config = DistillConfig(
        teacher="x", train_file="x", dev_file="x", num_layers=(1,), output_dir=tmp_path
    )
    assert TaughtTask(task, None, config, (0,), list).compared_figures == expected


def test_labels_that_count_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "classes", (*KINDS["classes"][:3], "text\na dog\n", "text\na\n"))
    with pytest.raises(UserError, match="no labels"):
        taught(tmp_path, "classes")
