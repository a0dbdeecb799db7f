import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TESTS = [
    "keras_bert_impl/layers",  # their examples, but one that stands in another
    "--deselect=keras_bert_impl/layers/bilstm.py::keras_bert_impl.layers.bilstm.StackedBiLSTM",
    "layers/test_flash_kernels.py",
    "layers/test_gpu_norm.py",
    "layers/test_dropout.py::test_jit_draws_the_same_bits_as_eager",
    "test_losses.py::test_value_and_gradients_are_those_of_sentence_transformers",
    "models/test_pretrainer.py::test_both_heads_give_the_original_s_log_probabilities",
    "optimizers/test_bert_adamw.py::test_adamw_is_the_formula_and_leaves_biases_undecayed",
    "optimizers/test_bert_adamw.py::test_it_works_in_plain_keras_fit",
]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_layers_models_and_optimizers_pass_their_tests_on_jax_as_well():
    # Keras takes its backend when it is imported: another backend needs another process.
    quickly = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # it compiles every operation, for one use
    chosen = [one if "keras_bert" in one else f"tests/keras_bert_impl/{one}" for one in TESTS]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", **quickly},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "passed" in result.stdout
