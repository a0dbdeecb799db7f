"""A tiny model and some texts for the tests of vectors."""

import pytest

from tests.support.model_folders import write_encoder

TEXTS = ["the dog runs .", "a cat", "", "the cat sleeps , a list", "the dog runs", "a value ."]


@pytest.fixture(scope="package")
def model(tmp_path_factory):
    return str(write_encoder(tmp_path_factory.mktemp("vectors") / "model"))


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return str(path)
