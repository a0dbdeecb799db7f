"""Whatever a file that we write holds when it is read again: it is used, or one sentence."""

import json
import re

import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.hugging_face import HuggingFaceSource
from keras_bert_impl.checkpoints.formats.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.model_source import architecture_of, label_names
from keras_bert_impl.checkpoints.sentence_modules import (
    SentenceSettings,
    read_sentence_settings,
    write_sentence_files,
)
from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    num_texts,
    served_length,
    task_settings,
)
from keras_bert_impl.checkpoints.text_files import read_casing, refuse_foreign_tokenizer
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import read_log
from keras_bert_impl.models.head_settings import has_bilstm, pooling_of
from keras_bert_impl.tokenization.model_files import read_tokenizer_json
from tests.support.damage import other_files
from tests.support.tokenizer_files import write_tokenizer_json

CONFIG = {
    "model_type": "bert",
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "no", "1": "yes"},
    "label2id": {"no": 0, "yes": 1},
    "problem_type": "single_label_classification",
    "is_decoder": False,
    "classifier_pooling": "mean",
    "task_specific_params": {
        "keras_bert_impl": {
            "task": "labelled texts",
            "max_seq_length": 16,
            "num_texts": 1,
            "special_tokens": "keep",
            "long_text": "windows",
            "doc_stride": 4,
            "window_answers": "mean",
            "text_pair_column": None,
        }
    },
}


def read_model_config(path):
    config = BertConfig.from_google_file(path)
    pooling_of(config), has_bilstm(config)
    architecture_of(config), label_names(config), config.to_google(), config.to_hugging_face()
    served_length(config, None), num_texts(config), long_texts_of(config), task_settings(config)


def read_sentences(path):
    folder = path.parent if path.parent.name == "model" else path.parent.parent
    return read_sentence_settings(folder)


def read_tokenizer_config(path):
    refuse_foreign_tokenizer(path.parent)
    return read_casing(path.parent)


def write_all(root):
    """A sound file of each kind, by its name."""
    model = root / "model"
    model.mkdir(parents=True)
    write = {
        model / "config.json": CONFIG,
        model / "tokenizer_config.json": {
            "do_lower_case": True,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "tokenizer_class": "BertTokenizer",
            "model_max_length": 16,
        },
        model / "model.safetensors.index.json": {
            "metadata": {"total_size": 4},
            "weight_map": {"x": "model-00001-of-00001.safetensors"},
        },
    }
    for path, values in write.items():
        path.write_text(json.dumps(values))
    write_tokenizer_json(model, ["[PAD]", "[CLS]", "[SEP]", "a"])
    write_safetensors(model / "model-00001-of-00001.safetensors", {"x": np.float32([1])})
    settings = SentenceSettings(normalize=True, max_seq_length=9, prompt="query: ")
    write_sentence_files(model, settings, 8, None, lambda path, v: path.write_text(json.dumps(v)))


READERS = {
    "model/config.json": read_model_config,
    "model/tokenizer_config.json": read_tokenizer_config,
    "model/tokenizer.json": read_tokenizer_json,
    "model/model.safetensors.index.json": lambda path: HuggingFaceSource(path.parent),
    "model/modules.json": read_sentences,
    "model/1_Pooling/config.json": read_sentences,
    "model/sentence_bert_config.json": read_sentences,
    "model/config_sentence_transformers.json": read_sentences,
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_used_or_refused_in_one_sentence(tmp_path, name):
    write_all(tmp_path)
    for _ in other_files(tmp_path / name):
        fault = fault_of(READERS[name], tmp_path / name)
        assert len(fault) <= 1200
        assert not re.search("[\x00-\x1f\x7f]", fault)


def fault_of(read, path):
    try:
        read(path)
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", READERS)
def test_what_is_damaged_here_is_sound_before(tmp_path, name):
    write_all(tmp_path)
    READERS[name](tmp_path / name)


def test_a_damaged_line_of_a_log_alone_is_left_out(tmp_path, caplog):
    path = tmp_path / "metrics.jsonl"
    for line in (b"[" * 99_999, b"\xff", b'{"step": -1}', b"x" * (1 << 21)):
        path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3, "loss": NaN}\n{"step": 4}')
        assert [found["step"] for found in read_log(path)] == [1, 3]
        assert "1 lines cannot be read" in caplog.messages[-1]
