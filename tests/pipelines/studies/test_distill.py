"""Small models of a trained one: which layers, what they begin with, and the table."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.teaching_options import DistillConfig
from pipelines.studies import distill
from pipelines.studies.distill import Distillation, Measured, cut, table
from tests.support.model_folders import (
    WORD_VOCABULARY,
    tiny_config,
    write_chooser,
    write_classifier,
    write_encoder,
    write_known,
    write_prompted,
    write_tagger,
)
from tests.support.squad_files import write_squad
from tools.table import ToolPrograms

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))
TABLE = "text\tlabel\nthe dog runs\ta\na cat\tb\nthe list\ta\nthe value .\tb\n"


def config(folder, teacher, **changes):
    (folder / "texts.tsv").write_text(TABLE)
    files = dict.fromkeys(("train_file", "dev_file"), str(folder / "texts.tsv"))
    given = {
        "num_layers": (1,),
        "task_flags": "--train_batch_size=2 --num_train_epochs=1 --max_seq_length=12",
    }
    return DistillConfig(
        teacher=str(teacher), output_dir=folder / "small", **{**files, **given, **changes}
    )


def keep(folder, **settings):
    """Has a model directory say how it was trained."""
    described = json.loads((folder / "config.json").read_text())
    described["task_specific_params"] = {"keras_bert_impl": settings}
    (folder / "config.json").write_text(json.dumps(described))


def classifier(folder):
    return write_classifier(folder, ["a", "b"])


@pytest.mark.parametrize("write", [write_classifier, write_prompted])
def test_a_student_begins_with_layers_of_its_teacher(write, tmp_path):
    given = (["a", "b"],) if write is write_classifier else ()
    more = {"num_hidden_layers": 2} if write is write_classifier else {}
    teacher = write(tmp_path / "teacher", *given, **more)
    cut(str(teacher), [1], tmp_path / "cut")
    student, whole = (read_portable(tmp_path / name) for name in ("cut", "teacher"))
    assert student.config.num_hidden_layers == 1
    expected = {
        name.replace("layer_1/", "layer_0/"): array
        for name, array in whole.weights.items()
        if not name.startswith("layer_0/")
    }
    assert student.weights.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(student.weights[name], array)


@pytest.mark.slow
def test_a_student_is_trained_and_compared(tmp_path):
    teacher = write_classifier(tmp_path / "teacher", ["a", "b"], num_hidden_layers=2)
    flags = f"--teacher={teacher}\n"
    asked = config(tmp_path, teacher, lessons="relations", label_weight=0.5, flags=flags)
    asked = replace(asked, task_flags=f"{asked.task_flags} --save_best")
    lines, files = Distillation(asked, ToolPrograms()).run()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[2:5]]
    assert [(row[1], row[3]) for row in rows] == [
        ("teacher", "float32"),
        ("layers 1", "float32"),
        ("layers 1", "int8"),
    ]
    assert all(row[-2] for row in rows)  # the sizes
    assert files[0] == tmp_path / "small" / "layers-1" / "model"
    assert BertClassifier.from_pretrained(files[0], num_labels=2).config.num_hidden_layers == 1
    assert f" from `{teacher}`" in (files[0] / "README.md").read_text()
    [start] = (tmp_path / "small").glob("layers-1-cut-*")
    begun = read_portable(start).weights
    trained = read_portable(files[0]).weights
    assert any(np.any(trained[name] != begun[name]) for name in begun)
    weights = teacher / "model.safetensors"  # of a teacher that is trained anew
    save_file({name: -array for name, array in load_file(weights).items()}, weights)
    with pytest.raises(UserError, match="layers-1: its checkpoint was made with other settings"):
        Distillation(asked, ToolPrograms()).run()


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", 0), ("--save_best", None), ("--early_stopping_evals=2", None), ("--eval_steps=5", 5)],
)
def test_a_student_is_evaluated_on_the_way_where_that_chooses_something(more, expected, tmp_path):
    asked = config(tmp_path, classifier(tmp_path / "teacher"), task_flags=more)
    training = replace(Distillation(asked, ToolPrograms())._known, do_train=True).training
    assert training.eval_steps == expected


def test_a_teacher_of_glue_knows_the_codes_in_its_tasks_files(tmp_path):
    folder = write_classifier(tmp_path / "teacher", ["negative", "positive"])
    keep(folder, task="SST-2", max_seq_length=12)
    file = tmp_path / "dev.tsv"
    file.write_text("sentence\tlabel\nthe dog runs\t1\na cat\t0\nthe list\tnegative\n")
    files = dict.fromkeys(("dev_file", "train_file"), str(file))
    study = Distillation(config(tmp_path, folder, **files, label_weight=0.5), ToolPrograms())
    labels = [one.example.label for one in study._lessons()]
    assert labels == ["positive", "negative", "negative"]


@pytest.mark.parametrize("option", ["train_file", "unlabelled_file"])
def test_a_teacher_of_answers_may_have_held_articles_out(option, tmp_path):
    extra = {"architectures": ["BertForQuestionAnswering"]}
    folder = write_known(tmp_path / "teacher", BertSpanLabeler, tiny_config(extra=extra))
    keep(folder, task="squad", max_seq_length=12, max_query_length=4, dev_share=0.1, dev_seed=3)
    file = str(write_squad(tmp_path / "dev.json", 4))
    files = {"dev_file": file, "train_file": None, option: file}
    if option == "unlabelled_file":
        files[option] = (file,)
    study = Distillation(config(tmp_path, folder, **files, task_flags=""), ToolPrograms())
    assert replace(study._known, do_train=True).dev_share == 0
    assert len([*study._lessons()]) == 4


@pytest.mark.parametrize(("more", "length"), [("", 16), ("--max_seq_length=128", 128)])
def test_a_flag_that_is_given_stands_against_what_the_teacher_keeps(more, length, tmp_path):
    folder = classifier(tmp_path / "teacher")
    keep(folder, task="labelled texts", max_seq_length=16)
    study = Distillation(config(tmp_path, folder, task_flags=more), ToolPrograms())
    assert study._known.max_seq_length == length


UNLABELLED = {
    "classes": (classifier, ".tsv", TABLE, "text\tlabel\nthe dog\tc\na cat\t\nthe list\ta\n"),
    "numbers": (
        lambda folder: write_classifier(folder, ["x"]),
        ".tsv",
        "text\tlabel\nthe dog\t1\na cat\t2\n",
        "text\tlabel\nthe dog\tno\na cat\t-1\na list\t3\n",
    ),
    "tags": (
        lambda folder: write_tagger(folder, ["B-X", "O"]),
        ".txt",
        "the O\ndog B-X\n",
        "the O\n\ndog B-Y\n\na B-X\n",
    ),
    "tags of sentences": (
        lambda folder: write_tagger(folder, ["B-X", "O"]),
        ".txt",
        "the dog\tO B-X\n",
        "the list\tO O\n\ndog list\tO B-Y\n\na dog\tO B-X\n",
    ),
    "endings": (
        write_chooser,
        ".csv",
        "sent1,ending0,ending1,label\nthe,dog,cat,1\n",
        "sent1,ending0,ending1,label\nthe,dog,cat,1\nthe,list,cat,x\nthe,value,cat,\n",
    ),
}


@pytest.mark.parametrize("kind", UNLABELLED)
@pytest.mark.parametrize(("option", "weight"), [("unlabelled_file", 0.5), ("train_file", 0.0)])
def test_labels_are_read_where_they_count_alone(kind, option, weight, tmp_path):
    write, end, labelled, text = UNLABELLED[kind]
    dev, more = (tmp_path / f"{name}{end}" for name in ("dev", "more"))
    dev.write_text(labelled)
    more.write_text(text)
    files = {"dev_file": str(dev), "train_file": None, option: str(more)}
    if option == "unlabelled_file":
        files[option] = (str(more),)
    softer = {} if kind == "numbers" else {"temperature": 5.0}
    asked = config(tmp_path, write(tmp_path / "teacher"), label_weight=weight, **files, **softer)
    study = Distillation(
        replace(asked, task_flags="--context=sentence" * kind.startswith("tags")), ToolPrograms()
    )
    lessons = [*study._lessons()]
    assert [lesson.labelled for lesson in lessons] == [False] * 3
    rows = lessons[0].task.rows([one.example for one in lessons], TOKENIZER, 12)
    assert not {"label_ids", "tag_ids"} & {*rows.tokens, *rows.values}


def test_texts_are_learned_with_the_prompt_that_they_are_embedded_with(tmp_path):
    scored, texts = tmp_path / "dev.tsv", tmp_path / "more.txt"
    scored.write_text("sentence1\tsentence2\tscore\nthe dog\ta cat\t1\nthe list\ta dog\t3\n")
    texts.write_text("the dog\na cat\n")
    teacher = write_prompted(tmp_path / "teacher")
    files = {"dev_file": str(scored), "train_file": None, "unlabelled_file": (str(texts),)}
    study = Distillation(config(tmp_path, teacher, **files, task_flags=""), ToolPrograms())
    assert [one.example.text_a for one in study._lessons()] == ["dog the dog", "dog a cat"]


def test_a_text_takes_as_long_as_its_rows(monkeypatch):
    opened, times = object.__new__(distill._Opened), iter([1.0, 2.0])
    rows = type("FourTexts", (), {"num_examples": 4, "__len__": lambda _: 12})()
    opened._split, opened._predict = SimpleNamespace(rows=rows), lambda _: ()
    monkeypatch.setattr(distill, "RowEvaluation", lambda *_: None)
    monkeypatch.setattr(distill, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert opened.milliseconds([0] * 10) == 300.0  # ten rows in a second, three rows a text


def test_the_table_compares_all_with_the_teacher():
    models = [
        Measured("teacher", 6, "float32", 0.8, 0.01, 4.0, 90.0),
        Measured("layers 1, 3, 5", 3, "int8", 0.792, float("nan"), 1.0, 18.0),
        Measured("layers 5", 1, "int8", 0.4, float("nan"), 0.5, float("nan")),  # not kept
    ]
    lines = table("spearman", models, 1500)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:5]]
    assert cells == [
        ["teacher", "6", "float32", "0.8000 ± 0.0100", "100.0%", "4.00", "1.00", "90.0"],
        ["layers 1, 3, 5", "3", "int8", "0.7920", "99.0%", "1.00", "4.00", "18.0"],
        ["layers 5", "1", "int8", "0.4000", "50.0%", "0.50", "8.00", ""],
    ]


@pytest.mark.parametrize(
    ("write", "changes", "message"),
    [
        (write_encoder, {}, "no head of a task"),
        (classifier, {"num_layers": (10**9,)}, "1 layers"),
        (classifier, {"num_layers": (), "layers": (1,)}, "1 layers"),
        (classifier, {"layers": (0,)}, "say the same"),
        (classifier, {"num_layers": (1, 0)}, "`num_layers=0` must be 1 or more"),
        (classifier, {"num_layers": (), "layers": (-1,)}, "`layers=-1` must be 0 or more"),
        (classifier, {"task_flags": "--nodo_eval"}, "nodo_eval follows from other options"),
        (write_prompted, {"label_weight": 0.5}, "learned from the teacher alone"),
        (write_prompted, {"temperature": 5.0}, "`temperature=5.0`: numbers and vectors"),
        (
            lambda folder: write_classifier(folder, ["x"]),
            {"temperature": 5.0},
            "`temperature=5.0`: numbers and vectors",
        ),
        (classifier, {"task_flags": "--num_seeds=3"}, "leave num_seeds and search out"),
        (
            classifier,
            {"task_flags": "--recompute", "lessons": "hidden_states"},
            "with recompute nothing is learned",
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_written(write, changes, message, tmp_path):
    teacher = write(tmp_path / "teacher")
    with pytest.raises(UserError, match=message):
        Distillation(config(tmp_path, teacher, **changes), ToolPrograms())
    assert not (tmp_path / "small").exists()
