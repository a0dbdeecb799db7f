import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys

import keras
import pytest

from keras_bert_impl import backend
from keras_bert_impl.backend import (
    need_extra,
    others_want_cores,
    standard_error_held_back,
    usable_cores,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.serving.signatures import ServedModel
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.strategy import make_devices
from tests.support.tiny_bert import TINY

SENTENCE = (
    r"^{} needs Keras' TensorFlow backend, but Keras runs on jax; set the environment variable "
    r"KERAS_BACKEND=tensorflow\.$"
)


@pytest.fixture
def on_jax(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert usable_cores() == 7


@pytest.mark.parametrize(
    ("told", "they_do"),
    [
        ("0.1 0.2 0.3 2/600 77\n", False),
        ("0.1 0.2 0.3 3/600 77\n", True),
        ("", False),
        (None, False),
    ],
    ids=["one beside us", "two beside us", "nothing told", "no Linux"],
)
def test_others_want_cores_where_half_of_them_have_other_work(told, they_do, tmp_path, monkeypatch):
    if told is not None:
        (tmp_path / "loadavg").write_text(told)
    monkeypatch.setattr(backend, "_LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert others_want_cores() is they_do
    assert not others_want_cores(own=3)


def test_training_on_another_backend_is_refused_in_a_sentence(on_jax):
    with pytest.raises(UserError, match=SENTENCE.format("training")):
        make_devices(TrainingConfig(num_train_steps=1, num_warmup_steps=0))


def test_serving_on_another_backend_is_refused_in_a_sentence(on_jax):
    with pytest.raises(UserError, match=SENTENCE.format("a SavedModel")):
        ServedModel(BertPretrainer(TINY))


REQUIREMENTS = ["numpy>=2.0", 'uvicorn>=0.34; extra == "serve"', 'orjson; extra == "serve"']


def not_installed(_name):
    raise importlib.metadata.PackageNotFoundError


@pytest.mark.parametrize(
    ("requires", "command"),
    [
        (lambda _name: REQUIREMENTS, "pip install 'uvicorn>=0.34' 'orjson'."),
        (not_installed, "pip install '.[serve]' in the project's folder."),
    ],
    ids=["installed", "a checkout by itself"],
)
def test_a_package_of_an_extra_is_refused_with_what_pip_can_install(monkeypatch, requires, command):
    monkeypatch.setattr(importlib.metadata, "requires", requires)
    need_extra("serve", ["json"], "this")
    said = f"this needs the package no_such, which is not installed; {command}"
    with pytest.raises(UserError, match=re.escape(said)):
        need_extra("serve", ["json", "no_such"], "this")


PROGRAM = (
    "from keras_bert_impl.backend import import_tensorflow_quietly as quietly\n"
    "quietly()\n"
    "import importlib.util, sys, keras, tensorflow as tf\n"
    "assert int(tf.constant(1) + 1) == 2\n"
    "assert not sys.modules.keys() & {'jax', 'matplotlib', 'sklearn'}\n"
    "assert importlib.util.find_spec('sklearn')\n"
)


def test_importing_tensorflow_prints_nothing_and_leaves_out_what_no_tool_needs():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_was_held_back_is_shown_when_the_block_fails(capfd):
    def fail():
        with standard_error_held_back():
            os.write(2, b"the reason\n")
            raise ImportError("no")

    with pytest.raises(ImportError):
        fail()
    assert capfd.readouterr().err == "the reason\n"
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"
