"""A mistake in a file, a column or a model is told in one line, and before TensorFlow is loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_folders import write_encoder
from tools.table import Tool, ToolPrograms, tool_named, tool_names

ROOT = Path(__file__).resolve().parents[2]

TRAIN = "--output_dir={0}/run --init_checkpoint={0}/model --do_train --max_seq_length=12"
COLUMNS = "--text_column=x --label_column=label"
COMMANDS = [
    (f"run_classifier --train_file={{0}}/labels.csv {COLUMNS} {TRAIN}", "no column 'x'"),
    (f"run_classifier --train_file={{0}}/no.csv {TRAIN}", "no.csv: no such file"),
    (f"run_classifier --task_name=MRPC --data_dir={{0}}/no {TRAIN}", "no/train.tsv: no such file"),
    (
        f"run_classifier --train_file={{0}}/labels.csv {TRAIN} --init_checkpoint=/no/bert",
        "/no/bert: no such file or folder",
    ),
    (f"run_ner --train_file={{0}}/texts.txt --tag_column=9 {TRAIN}", "--tag_column is 9"),
    (f"run_swag --train_file={{0}}/labels.csv {TRAIN}", "'sent1'"),
    (f"run_squad --train_file={{0}}/no.json --max_query_length=4 {TRAIN}", "no.json: no such file"),
    (f"run_squad --train_file={{0}}/texts.txt --max_query_length=4 {TRAIN}", "is not JSON"),
    (
        "create_pretraining_data --input_file={0}/no.txt --output_file={0}/x.tfrecord"
        " --vocab_file={0}/model/vocab.txt",
        "no.txt: no such file",
    ),
    (
        "embed --input_file={0}/labels.csv --text_column=body --output_file={0}/x.npy"
        " --model={0}/model",
        "'body'",
    ),
    (
        "embed --input_file={0}/texts.txt --output_file={0}/x.npy --model=/no/bert",
        "/no/bert: no such file or folder",
    ),
    (
        "extract_features --input_file={0}/texts.txt --output_file={0}/x.jsonl --model={0}/model"
        " --layers=-9",
        "there is no layer -9",
    ),
    (
        "similar --input_file={0}/no.txt --vectors_file={0}/x.npy --model={0}/model --query=dog",
        "x.npy: no such file",
    ),
    ("answer --model=/no/bert --question=who --passage_file={0}/texts.txt", "/no/bert"),
    ("fill_mask --model={0}/model --text=[MASK]", "has no masked-LM head"),
    ("export_saved_model --model=/no/bert --output_dir={0}/saved", "/no/bert"),
    ("export_model --model=/no/bert --output_dir={0}/onnx --format=onnx", "/no/bert"),
    (
        "run_pretraining --input_file={0}/no* --output_dir={0}/run --init_checkpoint={0}/model"
        " --do_train",
        "matches no file",
    ),
    (
        "run_pretraining --input_file={0}/texts.txt --output_dir={0}/run --do_train"
        " --bert_config_file={0}/no.json --vocab_file={0}/model/vocab.txt",
        "no.json: no such file",
    ),
]

# One process for all of them: what one command loads, the next one would show as well.
PROGRAM = """
import contextlib, io, json, sys
from tools.table import tool_named

for words in json.load(sys.stdin):
    with contextlib.redirect_stderr(io.StringIO()) as error:
        code = tool_named(words[0]).main(words[1:])
    heavy = sorted({"tensorflow", "keras", "matplotlib"} & set(sys.modules))
    print(json.dumps([code, error.getvalue(), heavy]))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each command ends with: exit code, standard error, what is loaded."""
    folder = tmp_path_factory.mktemp("mistakes")
    write_encoder(folder / "model")
    (folder / "labels.csv").write_text("text,label\nthe dog runs,good\na cat,bad\n")
    (folder / "texts.txt").write_text("the dog\na cat\n")
    commands = [command.format(folder).split() for command, _ in COMMANDS]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    assert done.stderr == ""
    assert not (folder / "run").exists()
    lines = done.stdout.splitlines()
    return {command: json.loads(line) for (command, _), line in zip(COMMANDS, lines, strict=True)}


@pytest.mark.parametrize(("command", "part"), COMMANDS)
def test_a_mistake_is_one_line_before_tensorflow_is_loaded(told, command, part):
    code, error, loaded = told[command]
    assert (code, loaded) == (1, [])
    assert error.startswith("Error: ")
    assert len(error.splitlines()) == 1
    assert part in error


def test_a_tool_prints_beside_the_log_of_one_that_runs_it(capsys, tmp_path):
    (tmp_path / "text.txt").write_text("A dog. A cat.\n")
    flags = [f"--input_file={tmp_path}/text.txt", f"--output_file={tmp_path}/out.txt"]
    assert ToolPrograms().run("split_sentences", flags) == 0
    out, error = capsys.readouterr()
    assert out == ""
    assert "1 documents, 2 sentences" in error


@pytest.mark.parametrize(
    ("alone", "given", "then"), [(False, None, "1"), (False, "0", "0"), (True, None, None)]
)
def test_all_but_servers_take_onednns_products_unless_the_user_says_otherwise(
    monkeypatch, alone, given, then
):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given or "")
    if given is None:
        monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    seen = []

    def job(config, flags):
        seen.append(os.environ.get("TF_ENABLE_ONEDNN_OPTS"))

    assert Tool("", "A tool.", job, "tools.benchmarks.model:Workload", alone=alone).main([]) == 0
    assert seen == [then]


def test_servers_wait_for_texts_that_come_alone():
    alone = [name for name in tool_names() if tool_named(name).alone]
    assert sorted(alone) == ["playground", "serve"]
