"""A model that gives one answer to everything is told, with the figure of such an answer."""

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.glue_files import write_cola, write_sts
from tests.support.model_folders import WORD_VOCABULARY, tiny_config
from tests.support.squad_files import write_squad
from tests.support.tagged_files import write_tagged
from tests.support.tiny_bert import scatter_weights
from tools import run_classifier, run_ner, run_squad

pytestmark = pytest.mark.slow

ONE_ANSWER = "where one answer to every example reaches"
TAGS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


def names(*labels):
    return {"id2label": {str(number): label for number, label in enumerate(labels)}}


def cola(folder):
    model = BertClassifier(tiny_config(extra=names("unacceptable", "acceptable")), 2)
    files = ["--task_name=CoLA", f"--data_dir={write_cola(folder)}"]
    return model, run_classifier, files, "matthews_correlation = "


def sts(folder):
    number = {"problem_type": "regression", **names("score")}
    model = BertClassifier(tiny_config(extra=number), 1)
    files = ["--task_name=STS-B", f"--data_dir={write_sts(folder)}"]
    return model, run_classifier, files, "pearson = nan"


def questions(folder):
    path = write_squad(folder / "dev.json", negative=True)
    files = [f"--predict_file={path}", "--version_2_with_negative", "--max_query_length=4"]
    files.append("--null_score_diff_threshold=-1")
    return BertSpanLabeler(tiny_config()), run_squad, files, "f1 = 50.0000"


def tags(folder):
    path = write_tagged(folder / "dev.txt", 12)
    model = BertTokenClassifier(tiny_config(extra=names(*TAGS)), len(TAGS))
    return model, run_ner, [f"--dev_file={path}"], "f1 = 0.0000"


@pytest.mark.parametrize("make", [cola, questions, tags])
def test_one_answer_to_everything_is_told(tmp_path, capsys, make):
    model, tool, files, figure = make(tmp_path)
    scatter_weights(model)
    for variable in model.weights:
        if variable.path.startswith(("classifier", "span", "tagger")):
            last = np.arange(variable.shape[-1]) if make is tags else 0.0
            values = np.zeros(variable.shape) + (last if len(variable.shape) == 1 else 0.0)
            variable.assign(values)
    folder = tmp_path / "model"
    write_model_directory(folder, model, TextSettings(WORD_VOCABULARY))
    run = tmp_path / "run"
    words = [f"--init_checkpoint={folder}", f"--output_dir={run}", "--do_eval", "--notrim_padding"]
    assert tool.main([*words, "--max_seq_length=12", *files]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if ONE_ANSWER in line]
    assert len(warned) == 1
    assert f": {figure}" in warned[0]


def test_a_model_that_has_learned_is_not_told(tmp_path, capsys):
    model, tool, files, *_ = sts(tmp_path)
    scatter_weights(model)
    for variable in model.classifier.weights:
        variable.assign(-variable)  # as they are, the numbers fall where they should rise
    folder = tmp_path / "model"
    write_model_directory(folder, model, TextSettings(WORD_VOCABULARY))
    words = [f"--init_checkpoint={folder}", f"--output_dir={tmp_path}/run", "--do_eval"]
    assert tool.main([*words, "--max_seq_length=12", *files]) == 0
    assert ONE_ANSWER not in capsys.readouterr().err
