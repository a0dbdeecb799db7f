"""The same file answered twice: by `predict`, and by the task's own run (`--do_predict`)."""

import json

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from pipelines.tables.files import open_table
from tests.support.choice_files import write_json_lines
from tests.support.labelled_files import CLASSES, write_classes
from tests.support.model_folders import tiny_config, write_any, write_classifier
from tests.support.squad_files import write_squad
from tests.support.tagged_files import write_tagged
from tools import predict, run_classifier, run_ner, run_squad, run_swag

pytestmark = pytest.mark.slow

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def settings(task, **more):
    return {"task_specific_params": {"keras_bert_impl": {"task": task, **more}}}


def named(labels):
    return {"id2label": {str(number): label for number, label in enumerate(labels)}}


def predicted(model, path, *flags):
    """What `predict` says of a file."""
    out = path.with_name("answers.jsonl")
    words = [f"--model={model}", f"--input_file={path}", f"--output_file={out}", "--format=json"]
    assert predict.main([*words, *flags]) == 0
    return [json.loads(line)["answer"] for line in out.read_text().splitlines()]


def lines_of(folder, records):
    path = folder / "asked.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def run(tool, model, folder, *flags):
    """Predicts by a task's own tool."""
    words = [f"--init_checkpoint={model}", f"--output_dir={folder}", "--do_predict"]
    assert tool.main([*words, *flags]) == 0


@pytest.mark.parametrize("engine", ["tensorflow", "openvino"])
def test_labels(tmp_path, engine):
    long = {"max_seq_length": 10, "long_text": "windows", "doc_stride": 3, "num_texts": 1}
    labels = sorted(CLASSES)
    config = {**named(labels), **settings("labelled texts", **long)}
    model = write_classifier(tmp_path / "model", labels)
    change(model, **config)
    path = write_classes(tmp_path / "dev.csv", 30)
    run(run_classifier, model, tmp_path / "run", f"--dev_file={path}")
    table = open_table(str(tmp_path / "run" / "dev_predictions.tsv"))
    rows = [record.values for record in table.records()]
    found = predicted(model, path, "--text_column=text", f"--engine={engine}")
    assert [one["label"] for one in found] == [row["prediction"] for row in rows]
    for number, label in enumerate(labels):
        offline = [float(row[f"P({label})"]) for row in rows]
        ours = [one["probabilities"][number] for one in found]
        np.testing.assert_allclose(ours, offline, atol=1e-5)


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_questions(tmp_path):
    own = {"max_query_length": 4, "doc_stride": 2, "max_answer_length": 3, "max_seq_length": 12}
    own |= {"version_2_with_negative": True, "null_score_diff_threshold": -0.3}
    config = with_task_settings(tiny_config(), {"task": "squad", **own})
    model = write_any(tmp_path / "model", BertSpanLabeler(config))
    path = write_squad(tmp_path / "dev.json", negative=True)
    run(run_squad, model, tmp_path / "run", f"--predict_file={path}")
    offline = json.loads((tmp_path / "run" / "predictions.json").read_text())
    paragraphs = json.loads(path.read_text())["data"][0]["paragraphs"]
    asked = [(x["context"], one) for x in paragraphs for one in x["qas"]]
    records = [{"question": one["question"], "passage": passage} for passage, one in asked]
    found = predicted(model, lines_of(tmp_path, records))
    expected = [offline[one["id"]] for _, one in asked]
    assert [one["answer"] for one in found] == expected
    assert 0 < sum(map(bool, expected)) < len(expected)


def test_entities(tmp_path):
    own = {"tagging_scheme": "iob2", "tag_unit": "words", "doc_stride": 3, "max_seq_length": 9}
    own |= {"columns": 2, "context": "document"}
    config = tiny_config(extra={**named(TAGS), **settings("ner", **own)})
    model = write_any(tmp_path / "model", BertTokenClassifier(config, len(TAGS)))
    path = write_tagged(tmp_path / "dev.txt", 12)
    run(run_ner, model, tmp_path / "run", f"--dev_file={path}")
    lines = (tmp_path / "run" / "dev_entities.jsonl").read_text().splitlines()
    offline = [json.loads(line) for line in lines]
    asked = lines_of(tmp_path, [{"text": one["text"]} for one in offline])
    found = predicted(model, asked, "--signature=text")
    for one, other in zip(found, offline, strict=True):
        for name in ("type", "text", "start", "end"):
            assert one[name] == [entity[name] for entity in other["entities"]]
        scores = [entity["score"] for entity in other["entities"]]
        np.testing.assert_allclose(one["score"], scores, atol=1e-5)
    assert sum(one["count"] for one in found)


def test_endings(tmp_path):
    own = {"task": "swag", "num_choices": 4, "max_seq_length": 12}
    config = with_task_settings(tiny_config(), own)
    model = write_any(tmp_path / "model", BertMultipleChoice(config, 4))
    path = write_json_lines(tmp_path / "dev.jsonl", 12)
    run(run_swag, model, tmp_path / "run", f"--dev_file={path}")
    table = open_table(str(tmp_path / "run" / "dev_predictions.tsv"))
    rows = [record.values for record in table.records()]
    found = predicted(model, path)
    assert [str(one["ending"]) for one in found] == [row["prediction"] for row in rows]
    offline = [[float(row[f"P({number})"]) for number in range(4)] for row in rows]
    np.testing.assert_allclose([one["probabilities"] for one in found], offline, atol=1e-5)
