"""What several tests of the runners compare with."""

import pytest

from tests.support.pretraining_corpus import contents, make_shards


@pytest.fixture(scope="package")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """What one process makes of the tiny corpus without interruption."""
    folder = tmp_path_factory.mktemp("expected")
    make_shards(folder)
    return contents(folder / "out")
