"""What stands beside an exported graph, read again."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.task_settings import task_settings, with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.exported import (
    ExportConfig,
    ExportModelConfig,
    is_openvino_export,
    read_exported,
    write_digests,
)
from tests.support.model_folders import WORD_VOCABULARY, tiny_config
from tests.support.run_checkpoints import change_json

SETTINGS = {"answers": "label", "max_seq_length": 9, "labels": ["no", "yes"]}


@pytest.fixture
def folder(tmp_path):
    WORD_VOCABULARY.write(tmp_path / "vocab.txt")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    config = with_task_settings(tiny_config(), {"task": "any", "doc_stride": 5})
    (tmp_path / "config.json").write_text(json.dumps(config.to_hugging_face()))
    return tmp_path


def test_all_that_the_model_directory_said_is_there(folder):
    found = read_exported(folder)
    assert (found.labels, found.max_seq_length, found.is_multi_label) == (("no", "yes"), 9, False)
    assert (found.text.do_lower_case, found.text.vocabulary) == (False, WORD_VOCABULARY)
    assert task_settings(found.config) == {"task": "any", "doc_stride": 5}


@pytest.mark.parametrize(
    ("answers", "labels", "several", "vectors"),
    [("labels", ("no", "yes"), True, False), ("embedding", ("no", "yes"), False, True)],
)
def test_it_says_what_it_answers(folder, answers, labels, several, vectors):
    (folder / "settings.json").write_text(json.dumps({**SETTINGS, "answers": answers}))
    found = read_exported(folder)
    assert (found.labels, found.is_multi_label, found.gives_vectors) == (labels, several, vectors)


def test_vectors_are_compared_as_it_says_and_by_the_cosine_where_it_does_not(folder):
    assert read_exported(folder).sentence.similarity == "cosine"
    change_json(folder / "settings.json", similarity="dot")
    assert read_exported(folder).sentence.similarity == "dot"


def test_one_without_the_configuration_of_its_model_is_refused(folder):
    (folder / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json: no such file"):
        read_exported(folder)


def test_one_that_does_not_say_how_text_is_cut_is_told(folder):
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UserError, match="how its text is cut; export it again"):
        read_exported(folder)


def test_exports_are_known_by_their_files(folder):
    assert not is_openvino_export(folder)
    (folder / "model.xml").touch()
    assert is_openvino_export(folder)
    (folder / "model.tflite").touch()
    with pytest.raises(UserError, match="for LiteRT"):
        is_openvino_export(folder)


def test_a_vocabulary_that_is_larger_than_its_model_is_told(folder):
    change_json(folder / "config.json", vocab_size=len(WORD_VOCABULARY) - 1)
    with pytest.raises(UserError, match=r"has more tokens than its model \(\d+\); export it again"):
        read_exported(folder)


def test_the_manual_s_command_writes_the_digests_anew(folder):
    for name in ("README.md", "client.py", "assets/vocab.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a file")
    write_digests(folder)
    written = (folder / "SHA256SUMS").read_text().splitlines()
    root = Path(__file__).parents[3]
    manual = (root / "docs/how_to/exporting.md").read_text(encoding="utf-8")
    (command,) = re.findall("`(find .*> SHA256SUMS)`", manual)
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert sorted((folder / "SHA256SUMS").read_text().splitlines()) == sorted(written)


def test_the_defaults_export_everything():
    export = ExportConfig(model=Path("a"), output_dir=Path("b"))
    assert (export.top_k, export.max_seq_length, export.verify) == (10, None, True)


def test_what_is_of_other_formats_is_refused():
    given = {"model": Path("a"), "output_dir": Path("b")}
    for form in ("onnx", "openvino", "litert", "static"):
        with pytest.raises(UserError, match="`top_k` is for `format=saved_model`; leave it out"):
            ExportModelConfig(**given, format=form, top_k=3)
    with pytest.raises(UserError, match="`dimensions` is for `format=static`"):
        ExportModelConfig(**given, format="onnx", dimensions=3)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"top_k": 0}, "`top_k=0` must be"),
        ({"max_seq_length": 4}, "`max_seq_length=4` must be 5 or more"),
    ],
)
def test_values_out_of_range_are_refused(value, said):
    with pytest.raises(UserError, match=said):
        ExportConfig(model=Path("a"), output_dir=Path("b"), **value)
