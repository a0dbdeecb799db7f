import sys
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.cpu_kernels import kernel_choice, xla_programs
from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels, forward_function
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.kernels import PLAIN
from keras_bert_impl.models.encoder import BertEncoder
from tests.support.tiny_bert import TINY, features


def test_on_a_cpu_the_fast_kernels_are_chosen_unless_xla_compiles_the_step():
    assert choose_kernels().name == "fast"
    assert choose_kernels("fast", use_xla=True).name == "fast"
    assert choose_kernels("auto", use_xla=True) is PLAIN
    assert choose_kernels("plain") is PLAIN


def test_with_an_accelerator_the_plain_ones_are(monkeypatch):
    monkeypatch.setattr(kernel_choice, "accelerated", lambda: True)
    assert choose_kernels() is PLAIN


def test_where_threads_cannot_share_programs_the_plain_ones_are(monkeypatch):
    monkeypatch.setattr(kernel_choice, "safe_in_threads", lambda: False)
    xla_programs.warn_of_slower_kernels.cache_clear()
    with pytest.warns(UserWarning, match="slower kernels"):
        assert choose_kernels("fast") is PLAIN
    xla_programs.warn_of_slower_kernels.cache_clear()


def test_an_unknown_choice_is_refused():
    with pytest.raises(UserError, match="kernels 'slow': no such choice; take one of auto, plain"):
        choose_kernels("slow")


@pytest.mark.parametrize(
    ("device", "capability", "name"),
    [
        ("cpu", None, "plain"),
        ("gpu", "7.5", "plain"),
        ("gpu", "gfx90a", "plain"),
        ("gpu", "8.0", "flash"),
        ("gpu", "12.0", "flash"),
    ],
)
def test_other_backends_have_no_fast_kernels_but_flash_where_cudnn_has_it(
    monkeypatch, device, capability, name
):
    monkeypatch.setattr(kernel_choice.keras.backend, "backend", lambda: "jax")
    first = SimpleNamespace(platform=device, compute_capability=capability)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(devices=lambda: [first]))
    assert choose_kernels().name == name
    assert choose_kernels("plain") is PLAIN
    with pytest.raises(UserError, match="they exist for TensorFlow, not for jax"):
        choose_kernels("fast")


@pytest.mark.parametrize("accelerated", [False, True])
def test_the_forward_function_computes_what_the_model_computes(monkeypatch, accelerated):
    monkeypatch.setattr(kernel_choice, "accelerated", lambda: accelerated)
    model = BertEncoder(TINY)
    batch = {name: features()[name] for name in model.input}
    expected, given = np.array(model(batch)["pooled_output"]), forward_function(model)(batch)
    np.testing.assert_allclose(np.array(given["pooled_output"]), expected, atol=1e-5)
