"""Model directories that several tests of this room read."""

import pytest

from tests.support.model_folders import write_classifier, write_encoder, write_pretrainer


@pytest.fixture(scope="package")
def pretrainer_folder(tmp_path_factory):
    return write_pretrainer(tmp_path_factory.mktemp("models") / "pretrainer")


@pytest.fixture(scope="package")
def classifier_folder(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("models") / "classifier", ["no", "yes"])


@pytest.fixture(scope="package")
def regression_folder(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("models") / "regression", ["score"])


@pytest.fixture(scope="package")
def encoder_folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("models") / "encoder")
