"""Files that are answered: every kind in a table, the line of what is wrong, blocks."""

import csv
import io
import json

import pytest

from keras_bert_impl.checkpoints.task_settings import keep_task_settings, with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler
from pipelines.answering import predict as job
from pipelines.answering.config import PredictConfig
from pipelines.answering.predict import predict
from pipelines.corpora.encodings import TextEncoding
from tests.support.model_folders import tiny_config, write_any, write_classifier, write_tagger


def answered(folder, path, **options):
    config = PredictConfig(
        model=str(folder),
        input_file=str(path),
        output_file=str(path.parent / "out"),
        format="json",
        **options,
    )
    predict(config)
    return [json.loads(line) for line in (path.parent / "out").read_text().splitlines()]


def test_blocks_are_answered_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "_BLOCK", 3)
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    (tmp_path / "lines.txt").write_text("".join(f"the {'dog ' * n}\n" for n in range(8)))
    found = answered(folder, tmp_path / "lines.txt")
    assert [one["input"]["text"].count("dog") for one in found] == [*range(8)]


def test_what_json_has_not_is_null_in_other_columns(tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    (tmp_path / "rows.jsonl").write_text('{"text": "the dog", "x": NaN, "y": [-Infinity, 1]}\n')
    (found,) = answered(folder, tmp_path / "rows.jsonl")
    assert found["columns"] == {"x": None, "y": [None, 1]}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"input_file": "t.txt"}, r"t\.txt: is input, but the output would take its place"),
        ({"question": ("a ?",), "passage_file": "./t.txt"}, r"t\.txt: is input"),
        ({"input_file": "-"}, "no-model"),
        ({"input_file": "/dev/stdin"}, "no-model"),
    ],
)
def test_what_is_read_is_not_replaced(tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("the dog\n")
    with pytest.raises(UserError, match=sentence):
        predict(PredictConfig(model="./no-model", output_file="t.txt", **options))
    assert (tmp_path / "t.txt").read_text() == "the dog\n"


def test_a_bad_record_is_named_by_its_line(tmp_path):
    folder = write_any(
        tmp_path / "model",
        BertMultipleChoice(
            with_task_settings(tiny_config(), {"task": "swag", "num_choices": 2}), 2
        ),
    )
    path = tmp_path / "choices.jsonl"
    good = {"context": "the dog", "endings": ["runs", "sleeps"]}
    path.write_text(f"{json.dumps(good)}\n" + json.dumps({**good, "endings": ["runs"]}) + "\n")
    with pytest.raises(UserError, match=r"choices.jsonl: line 2 has no two endings"):
        answered(folder, path)
    assert not (tmp_path / "out").exists()  # nothing half done
    for endings in (5, None, ["runs", 5]):
        path.write_text(f"{json.dumps(good)}\n" + json.dumps({**good, "endings": endings}) + "\n")
        with pytest.raises(UserError, match=r"choices.jsonl: line 2.* ending"):
            answered(folder, path)
    path.write_text(json.dumps(good) + "\n")
    assert len(answered(folder, path)[0]["answer"]["probabilities"]) == 2
    table = tmp_path / "choices.csv"
    table.write_text("context,endings0,endings1\nthe dog,runs,sleeps\n")
    assert answered(folder, table)[0]["input"] == good


def test_questions_stand_in_columns_or_on_the_command_line(tmp_path, capsys):
    settings = {"task": "squad", "max_query_length": 4, "doc_stride": 2}
    folder = write_any(
        tmp_path / "model", BertSpanLabeler(with_task_settings(tiny_config(), settings))
    )
    path = tmp_path / "questions.csv"
    path.write_text("question,passage\nthe dog ?,a cat runs\n")
    (found,) = answered(folder, path)
    start, end = found["answer"]["start"], found["answer"]["end"]
    assert found["answer"]["answer"] == "a cat runs"[start:end]
    (tmp_path / "passage.txt").write_text("a cat\nruns")
    asked = {"question": ("the dog ?",), "passage_file": str(tmp_path / "passage.txt")}
    predict(PredictConfig(model=str(folder), signature="answers", **asked))
    assert "(line " in capsys.readouterr().out


def test_files_stand_in_any_encoding(tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    path = tmp_path / "texts.tsv"
    path.write_bytes('a"é\tthe dog\n'.encode("latin-1"))
    encoding = TextEncoding(encoding="latin-1")
    columns = {"text_column": "1", "text_pair_column": "2"}
    found = answered(folder, path, text_encoding=encoding, **columns)
    assert found[0]["input"] == {"text_a": 'a"é', "text_b": "the dog"}
    lines = tmp_path / "lines.txt"
    lines.write_bytes("é dog\n".encode("latin-1"))
    assert answered(folder, lines, text_encoding=encoding)[0]["input"] == {"text": "é dog"}


def test_the_columns_of_the_training_are_taken_where_a_file_has_them(tmp_path, caplog):
    caplog.set_level("INFO")
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {"text_column": "영화평", "text_pair_column": None})
    path = tmp_path / "dev.csv"
    path.write_text("번호,영화평,코드\n7,the dog,x\n8,a cat,y\n", encoding="utf-8")
    found = answered(folder, path)
    assert [one["input"]["text"] for one in found] == ["the dog", "a cat"]
    assert found[0]["columns"] == {"번호": "7", "코드": "x"}
    assert caplog.text.count("was trained: text_column = 영화평") == 1
    path.write_text("text,other\na cat,x\n")
    assert answered(folder, path)[0]["input"] == {"text": "a cat"}
    keep_task_settings(folder, {"text_column": "번호", "text_pair_column": "영화평"})
    path.write_text("번호,영화평,text\na cat,the dog,x\n", encoding="utf-8")
    assert answered(folder, path)[0]["input"] == {"text_a": "a cat", "text_b": "the dog"}
    asked = answered(folder, path, text_column="text", text_pair_column="영화평")[0]["input"]
    assert asked == {"text_a": "x", "text_b": "the dog"}


@pytest.mark.parametrize(("ending", "encoding"), [("csv", "utf-8-sig"), ("tsv", "utf-8")])
def test_the_ending_of_the_output_makes_a_table_for_spreadsheets(tmp_path, ending, encoding):
    folder = write_classifier(tmp_path / "model", ["나쁨", "yes"])
    path, output = tmp_path / "dev.csv", tmp_path / f"out.{ending}"
    path.write_text('id,review,label\n7,"the ""dog"",\nruns",yes\n8,a cat,no\n')
    predict(
        PredictConfig(
            model=str(folder), input_file=str(path), text_column="review", output_file=str(output)
        )
    )
    with output.open(encoding=encoding, newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if ending == "tsv" else ","))
    assert output.read_bytes().startswith(b"\xef\xbb\xbf") == (ending == "csv")
    assert [*rows[0]] == ["id", "review", "label", "prediction", "probability"]
    assert (rows[0]["review"], rows[1]["id"]) == ('the "dog",\nruns', "8")
    assert {row["prediction"] for row in rows} <= {"나쁨", "yes"}
    assert 0.5 <= float(rows[0]["probability"]) <= 1


@pytest.mark.parametrize("kind", ["number", "labels", "entities"])
def test_answers_without_a_probability_are_one_column(tmp_path, capsys, kind):
    if kind == "number":
        folder = write_classifier(tmp_path / "model", ["score"])
    elif kind == "labels":
        folder = write_classifier(tmp_path / "model", ["a", "b"])
        values = json.loads((folder / "config.json").read_text())
        values["problem_type"] = "multi_label_classification"
        (folder / "config.json").write_text(json.dumps(values))
    else:
        folder = write_tagger(tmp_path / "model", ["O", "B-PER"])
    predict(PredictConfig(model=str(folder), text=("the dog",), format="csv"))
    header, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert (header, row[0]) == (["text", "prediction"], "the dog")
    found = json.loads(row[1])
    assert isinstance(found, {"number": float, "labels": list, "entities": dict}[kind])


def test_the_ending_of_the_output_makes_json_and_a_given_format_stands(tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    asked = {"model": str(folder), "text": ("the dog",)}
    predict(PredictConfig(output_file=str(tmp_path / "a.jsonl"), **asked))
    assert json.loads((tmp_path / "a.jsonl").read_text())["input"] == {"text": "the dog"}
    predict(PredictConfig(output_file=str(tmp_path / "a.csv"), format="table", **asked))
    assert (tmp_path / "a.csv").read_text().startswith("the dog\n ")
