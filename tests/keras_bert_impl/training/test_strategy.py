"""Strategies of several devices are told in test_step.py, where each has a process of its own."""

import json
from urllib.error import URLError

import pytest
import tensorflow as tf

from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.kernels import PLAIN
from keras_bert_impl.training import strategy
from keras_bert_impl.training.strategy import (
    Devices,
    check_same_step,
    make_devices,
    present_devices,
)
from tests.support.toy_training import toy_config

CLUSTER = {"worker": ["a:1", "b:1"]}


def test_one_device_is_the_cpu_without_xla_where_there_is_no_gpu():
    devices = make_devices(toy_config(kernels="auto"))
    assert (devices.replicas, devices.workers, devices.own_replicas) == (1, 1, 1)
    assert (devices.is_chief, devices.on_cpu, devices.use_xla) == (True, True, False)
    assert devices.describe("bfloat16").endswith(", bfloat16, XLA kernels")


def test_xla_may_be_asked_for():
    assert make_devices(toy_config(use_xla=True)).use_xla
    assert present_devices(toy_config(use_xla=True)).describe().endswith("compiled by XLA")


class Several:
    """A strategy of some replicas."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(strategy, "usable_cores", lambda: 2)


def test_a_cpu_is_described_by_its_cores_and_replicas(two_cores):
    one = Devices(Several(1), use_xla=False, kernels=TrainingKernels())
    assert one.describe("bfloat16") == "2 CPU cores, bfloat16, XLA kernels"
    split = Devices(Several(4), use_xla=False, workers=2, worker=1, kernels=PLAIN)
    assert split.describe("float32") == (
        "2 replicas on 2 CPU cores, float32, plain kernels, worker 2 of 2"
    )


def test_gpus_and_tpus_are_described_by_their_number(monkeypatch):
    gpus = Devices(Several(2), use_xla=True, on_cpu=False)
    assert gpus.describe("float16") == "2 GPUs, float16, compiled by XLA"
    monkeypatch.setattr(tf.distribute, "TPUStrategy", Several)
    tpu = Devices(Several(8), use_xla=False, on_cpu=False)
    assert tpu.describe("bfloat16") == "8 TPU cores, bfloat16"


def test_the_cpu_cannot_be_split_when_tensorflow_has_started():
    tf.constant(1)
    with pytest.raises(UserError, match=r"num_logical_devices=3.* comes too late"):
        make_devices(toy_config(num_logical_devices=3))


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": 2}}, "not in list"),
        (
            {"cluster": {**CLUSTER, "ps": ["c:1"]}, "task": {"type": "ps", "index": 0}},
            "only chief and worker train",
        ),
    ],
)
def test_a_cluster_that_cannot_train_is_refused_with_the_form_it_should_have(
    monkeypatch, described, problem
):
    monkeypatch.setenv("TF_CONFIG", json.dumps(described))
    with pytest.raises(UserError, match=f"TF_CONFIG: cannot be read .*{problem}") as error:
        make_devices(toy_config(distribution_strategy="multi_worker_mirrored"))
    assert '"cluster": {"worker": ["host:port", ...]}' in str(error.value)


@pytest.mark.parametrize("kind", [ValueError, URLError])
def test_a_tpu_that_is_not_there_is_a_sentence(monkeypatch, kind):
    def nobody(**_):
        raise kind("no such TPU\nat some line")

    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", nobody)
    with pytest.raises(UserError, match=r"tpu_name=v5.*: no TPU answers \(.*no such TPU"):
        make_devices(toy_config(distribution_strategy="tpu", tpu_name="v5"))


class SecondOfTwo(Devices):
    """The second worker, without the first one, whose place in a sum stays 0."""

    replicas, own_replicas = 2, 1


def test_workers_that_do_not_start_from_the_same_step_are_refused():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    check_same_step(Devices(strategy, use_xla=False), 7)
    other = SecondOfTwo(strategy, use_xla=False, workers=2, worker=1)
    check_same_step(other, 0)
    with pytest.raises(UserError, match="newest checkpoints are of the steps 0, 7; give them one"):
        check_same_step(other, 7)
