"""Which devices a run computes on, and what is said when another worker dies."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.backend import need_tensorflow, usable_cores
from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels
from keras_bert_impl.cpu_kernels.xla_programs import safe_in_threads
from keras_bert_impl.errors import UserError, reading, reason_of
from keras_bert_impl.json_files import parse_json
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels
from keras_bert_impl.models.base import set_kernels
from keras_bert_impl.training.config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices of a run, as the rest of the trainer sees them."""

    strategy: Any  # of `tf.distribute`; models are built in its scope
    use_xla: bool
    is_chief: bool = True  # whether this process writes files: the first of several workers
    workers: int = 1  # processes that train together
    worker: int = 0  # this process's number among them
    on_cpu: bool = True
    kernels: PlainKernels | None = None  # what models compute with; None leaves each its own

    def set_kernels(self, model: Any) -> None:
        """Makes a model, and those inside it, compute with these devices' kernels."""
        if self.kernels is not None:
            set_kernels(model, self.kernels)

    @property
    def replicas(self) -> int:
        """Over how many devices a batch is split."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def own_replicas(self) -> int:
        """How many of them are this process's."""
        return self.replicas // self.workers

    def describe(self, precision: str = "float32") -> str:
        """One line for a person: what computes, in which numbers, and how.

        Example:
            >>> devices = Devices(tf.distribute.OneDeviceStrategy("/cpu:0"), use_xla=True)
            >>> devices.describe("bfloat16").partition(", ")[2]
            'bfloat16, compiled by XLA'
        """
        how = "plain kernels" if self.kernels is None or self.kernels is PLAIN else "XLA kernels"
        parts = [self._hardware(), precision, "compiled by XLA" if self.use_xla else how]
        if self._on_tpu:
            parts[2:] = []  # everything is compiled there
        if self.workers > 1:
            parts.append(f"worker {self.worker + 1} of {self.workers}")
        return ", ".join(parts)

    def _hardware(self) -> str:
        own = self.own_replicas
        if not self.on_cpu:
            return _counted(own, "TPU core" if self._on_tpu else "GPU")
        cores = _counted(usable_cores(), "CPU core")
        return f"{own} replicas on {cores}" if own > 1 else cores

    @property
    def _on_tpu(self) -> bool:
        return isinstance(self.strategy, tf.distribute.TPUStrategy)


def _counted(number: int, noun: str) -> str:
    """Writes a number with its noun.

    Example:
        >>> _counted(1, "GPU"), _counted(2, "GPU")
        ('1 GPU', '2 GPUs')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def present_devices(config: TrainingConfig) -> Devices:
    """The devices of the strategy in whose scope this is called; without one, the default device.

    It serves a model that was built without `make_devices`.
    """
    return Devices(tf.distribute.get_strategy(), use_xla=bool(config.use_xla))


def make_devices(config: TrainingConfig) -> Devices:
    """Makes the strategy that `config` names; call it before TensorFlow touches any device.

    It also chooses the kernels that suit the devices; a `TrainingState` gives them to its model.
    """
    need_tensorflow("training")
    devices = _find_devices(config)
    if devices.use_xla and devices.own_replicas > 1 and not safe_in_threads():
        raise UserError(
            "`use_xla=True` with several CPU devices comes too late: XLA was used before in this "
            "process, and its programs crash when replicas share them; start a new process."
        )
    kernels = choose_kernels(config.kernels, devices.use_xla)
    return dataclasses.replace(devices, kernels=kernels)


def check_same_step(devices: Devices, step: int) -> None:
    """Compares the steps that the workers start from; with one worker there is nothing to do."""
    if devices.workers == 1:
        return

    def add_up(own: Any) -> Any:
        context = tf.distribute.get_replica_context()
        # The copy is on the replica's device; an input of a function is on none.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(own))

    # Each worker fills its own position, so that the sum lists them all: int64 [workers].
    own = np.zeros(devices.workers, np.int64)
    own[devices.worker] = step
    own_by_replica = devices.strategy.experimental_distribute_values_from_function(
        lambda _context: tf.constant(own)
    )
    run = tf.function(lambda own: devices.strategy.run(add_up, args=(own,)), autograph=False)
    total = run(own_by_replica)
    (first, *_) = devices.strategy.experimental_local_results(total)
    seen = (first.numpy() // devices.own_replicas).tolist()
    if len(set(seen)) > 1:
        raise UserError(
            f"the workers' newest checkpoints are of the steps {', '.join(map(str, seen))}; give "
            "them one `output_dir` that all see."
        )


def _find_devices(config: TrainingConfig) -> Devices:
    _split_cpu(config.num_logical_devices)
    if config.distribution_strategy == "tpu":
        return _tpu(config)
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    # On CPU, XLA is slower than oneDNN for an encoder (measured): the default is for accelerators.
    use_xla = kind == "GPU" if config.use_xla is None else config.use_xla
    if config.distribution_strategy == "one_device":
        one = tf.distribute.OneDeviceStrategy(f"/{kind.lower()}:0")
        return Devices(one, use_xla, on_cpu=kind == "CPU")
    if config.distribution_strategy == "mirrored":
        count = len(tf.config.list_logical_devices(kind))
        names = [f"/{kind.lower()}:{number}" for number in range(count)]
        return Devices(tf.distribute.MirroredStrategy(names), use_xla, on_cpu=kind == "CPU")
    # Before TensorFlow waits for ever for a cluster that it cannot understand.
    workers, worker = _place_in_cluster(os.environ.get("TF_CONFIG") or "{}")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return Devices(strategy, use_xla, worker == 0, workers, worker, on_cpu=kind == "CPU")


_CLUSTER = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'


def _place_in_cluster(text: str) -> tuple[int, int]:
    """How many workers a TF_CONFIG lists, and which one this process is; a chief comes first.

    Example:
        >>> cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
        >>> import json
        >>> described = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
        >>> _place_in_cluster(json.dumps(described))
        (3, 2)
    """
    described = parse_json(text, "TF_CONFIG", f"write it as {_CLUSTER}")
    with reading("TF_CONFIG", "a cluster of a chief and workers", f"write it as {_CLUSTER}"):
        if not described.get("cluster"):
            return 1, 0
        tasks = [
            (kind, number)
            for kind in sorted(described["cluster"])  # a chief before workers
            for number, _address in enumerate(described["cluster"][kind])
        ]
        if {kind for kind, _ in tasks} - {"chief", "worker"}:
            raise ValueError("only chief and worker train")
        own = described["task"]
        return len(tasks), tasks.index((own.get("type", "worker"), int(own["index"])))


def _split_cpu(count: int) -> None:
    if count == 1:
        return
    (cpu, *_) = tf.config.list_physical_devices("CPU")
    if tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices([], "GPU")  # a split CPU is there to be tried
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError as error:
        if len(tf.config.list_logical_devices("CPU")) != count:
            raise UserError(
                f"`num_logical_devices={count}` comes too late: TensorFlow has already started "
                "with another number of CPU devices; start a new process."
            ) from error


def _tpu(config: TrainingConfig) -> Devices:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=config.tpu_name, zone=config.tpu_zone, project=config.gcp_project
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, OSError, HTTPException, tf.errors.OpError) as error:
        raise UserError(
            f"`tpu_name={config.tpu_name}`: no TPU answers ({reason_of(error)}); check the name, "
            "zone and project, or choose another `distribution_strategy`."
        ) from error
    # On a TPU everything in `strategy.run` is compiled anyway.
    return Devices(tf.distribute.TPUStrategy(resolver), use_xla=False, on_cpu=False)


_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,  # it came back so soon that the old connection still stood
    tf.errors.InternalError,
)


@contextlib.contextmanager
def telling_of_lost_workers(config: TrainingConfig) -> Iterator[None]:
    """Inside the block, losing another worker is a sentence.

    TensorFlow's collectives cannot go on with a worker that died: all must start again.
    """
    try:
        yield
    except _LOST as error:
        if config.distribution_strategy != "multi_worker_mirrored":
            raise
        raise UserError(
            f"another worker was lost ({reason_of(error)}); start the same command again on every "
            "worker: the run goes on from its newest checkpoint."
        ) from error
