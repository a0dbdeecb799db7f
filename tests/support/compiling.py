"""How XLA compiles in the processes that tests start."""

import os

QUICKLY = "--xla_llvm_disable_expensive_passes=true --xla_backend_optimization_level=0"
"""XLA_FLAGS for what is not about XLA's speed: machine code is made with less effort."""


def anew():
    """The environment of a process that compiles as a user's does, all by itself."""
    ours = ("TF_XLA_FLAGS", "TF_NUM_INTRAOP_THREADS")
    return {name: value for name, value in os.environ.items() if name not in ours}
