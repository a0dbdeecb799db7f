import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = [
    "tests/keras_bert_impl/models/test_encoder.py",
    "tests/keras_bert_impl/models/test_pretrainer.py",
    "tests/keras_bert_impl/optimizers/test_bert_adamw.py",
    "keras_bert_impl/layers",  # their examples
    "keras_bert_impl/models",
]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_layers_models_and_optimizers_pass_their_tests_on_jax_as_well():
    # Keras takes its backend when it is imported: another backend needs another process.
    quickly = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # it compiles every operation, for one use
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", **quickly},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "passed" in result.stdout
