"""XLA programs that several threads may run at once.

In TensorFlow 2.21.0 they may not. XLA for CPUs hands large reductions (of 2^15 numbers: softmax,
the gradient of a bias) to YNNPACK, as fusions of the kind `__ynn_fusion`. Such a fusion is built
anew for every thread that runs its program while others do, and each time the builder appends its
literals to one vector of the program, under no lock: a vector that two threads let grow at once
ends the process (SIGSEGV). Parts of a compiled kernel, replicas on one CPU, and a server's threads
run one program at once. XLA's later sources hold the vector under a lock (`Literals` in
ynn_emitter.cc); no release of TensorFlow with that lock was seen yet.

A flag of XLA takes the fusions out, at no cost in speed. XLA reads its flags once, when it is first
used. So the first use is made here, with the flag, and what came of it is looked at: whoever used
XLA before us did so without the flag. Nothing else in the programs of a step is built while it
runs: they are loops and matrix products, without calls of other libraries.
"""

import functools
import mmap
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from keras_bert_impl.compat import name_by_content
from keras_bert_impl.kept_programs import EFFORT

_FLAG = "xla_cpu_experimental_ynn_fusion_type"
_KIND = "__ynn_fusion"
_lock = threading.Lock()
_safe: bool | None = None


def safe_in_threads() -> bool:
    """Whether several threads of this process may run one XLA program at once.

    The first call sees to it, where XLA has not been used before; it compiles nothing on another
    backend than TensorFlow, whose programs are none of ours.

    Example:
        >>> import tensorflow as tf
        >>> safe_in_threads()
        True
        >>> column_sums = tf.function(lambda rows: tf.reduce_sum(rows, 0), jit_compile=True)
        >>> program = column_sums.experimental_get_compiler_ir(tf.TensorSpec([512, 512]))
        >>> "__ynn_fusion" in program(stage="optimized_hlo")
        False
    """
    global _safe
    if keras.backend.backend() != "tensorflow":
        return True
    with _lock:
        if _safe is None:
            _safe = accelerated() or _first_use()
        return _safe


def accelerated() -> bool:
    """Whether programs run on a GPU or TPU, for which XLA makes no such fusions."""
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"))


@functools.cache  # said once
def warn_of_slower_kernels() -> None:
    """Says that, and why, nothing is compiled in this process."""
    warnings.warn(
        "slower kernels, without XLA, are in use: its programs crash when threads share them, and "
        f"keras_bert_impl could not set --{_FLAG}= before XLA was first used in this process.",
        stacklevel=3,
    )


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled by XLA, or as it is where threads may not share XLA's programs.

    Which of both is found out when it is first called, for XLA to be used no earlier.

    Example:
        >>> import tensorflow as tf
        >>> float(compiled(lambda number: number + 1.0)(tf.constant(2.0)))
        3.0
    """
    import tensorflow as tf

    @functools.wraps(function)
    def named(*arguments: Any) -> Any:
        outputs = function(*arguments)
        name_by_content(arguments, outputs)
        return outputs

    program = tf.function(named, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        if safe_in_threads():
            return program(*arguments)
        warn_of_slower_kernels()
        return function(*arguments)

    return run


def _first_use() -> bool:
    """Compiles, with the flag set, what would hold each kind of fusion without it."""
    import tensorflow as tf

    given = os.environ.get("XLA_FLAGS")
    try:
        if _known(Path(tf.sysconfig.get_lib())):
            os.environ["XLA_FLAGS"] = _with_flag(given or "")
        with tf.init_scope():  # the caller may be tracing a graph
            return _KIND not in _program()
    except Exception:  # whatever TensorFlow raises: then nothing is known of the program
        return False
    finally:
        # Another library that shares the variable may not know the flag, and would end the process.
        if given is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = given


def _program() -> str:
    """A product, an elementwise operation and a reduction, as XLA for CPUs would run them."""
    import tensorflow as tf

    @tf.function(jit_compile=True, autograph=False)
    def probe(rows: Any) -> Any:
        return tf.reduce_sum(tf.exp(tf.matmul(rows, rows)), axis=0)

    describe = probe.experimental_get_compiler_ir(tf.TensorSpec([512, 512], tf.float32))
    return str(describe(stage="optimized_hlo", platform_name="CPU"))


def _known(folder: Path) -> bool:
    """Whether this TensorFlow has the flag: XLA ends the process for one that it does not know."""
    for library in folder.glob("libtensorflow_framework*"):
        with (
            library.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            # With the 0 at its end the name is a string of the program, not a field of a message.
            if text.find(f"{_FLAG}\0".encode()) >= 0:
                return True
    return False


def _with_flag(given: str) -> str:
    """The flags in XLA_FLAGS, which may be the name of a file of flags, followed by ours."""
    if given.strip() and not given.lstrip().startswith("-"):
        try:
            given = Path(given).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return given  # XLA says best what it cannot read
    return f"--{EFFORT} {given} --{_FLAG}="  # XLA takes the last of several values
