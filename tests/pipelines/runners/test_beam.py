"""The Beam runner makes the local runner's bytes, on every Beam runner within reach.

The DirectRunner is always tried. Where a job service is named, it is tried too:
`KERAS_BERT_FLINK_ENDPOINT=localhost:8099` (Beam's Flink job server) and
`KERAS_BERT_PRISM_ENDPOINT=localhost:8073` (Prism).
"""

import os

import pytest

from keras_bert_impl.errors import UserError
from pipelines.records.description import Description
from tests.support.pretraining_corpus import contents, make_config, make_shards

beam_runner = pytest.importorskip("pipelines.runners.beam", reason="needs the extra `beam`")

pytestmark = pytest.mark.slow
_PORTABLE = ("--environment_type=LOOPBACK", "--parallelism=2")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("expected")
    make_shards(folder, num_shards=0)
    return contents(folder / "out")


@pytest.fixture
def small_blocks(monkeypatch):
    true_cut = beam_runner.documents.cut_into_blocks
    monkeypatch.setattr(beam_runner.documents, "cut_into_blocks", lambda p, f: true_cut(p, f, 700))


def _shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.endswith(".json")}


def test_direct_runner_makes_the_same_bytes(tmp_path, expected, small_blocks):
    made = beam_runner.run_beam(make_config(tmp_path, runner="DirectRunner", num_shards=0))
    files = contents(tmp_path / "out")
    assert files.keys() == expected.keys()
    assert _shards(files) == _shards(expected)
    described = Description.from_text(expected["train.tfrecord.recipe.json"], "expected")
    assert made.word_count() == described.word_count()


@pytest.mark.parametrize("service", ["FLINK", "PRISM"])
def test_a_job_service_makes_the_same_bytes(tmp_path, expected, small_blocks, service):
    endpoint = os.environ.get(f"KERAS_BERT_{service}_ENDPOINT")
    if not endpoint:
        pytest.skip(f"no job service named in KERAS_BERT_{service}_ENDPOINT")
    arguments = (f"--job_endpoint={endpoint}", *_PORTABLE)
    config = make_config(tmp_path, runner="PortableRunner", num_shards=0, beam_arguments=arguments)
    beam_runner.run_beam(config)
    assert _shards(contents(tmp_path / "out")) == _shards(expected)


def test_a_mistake_that_a_worker_finds_is_one_sentence(tmp_path):
    (tmp_path / "corpus.txt").write_text("the fox.\na hen.\n")
    config = make_config(tmp_path, runner="DirectRunner")
    with pytest.raises(UserError, match="holds one document, so no random next sentence"):
        beam_runner.run_beam(config)
    assert not (tmp_path / "out" / "train.tfrecord.recipe.json").exists()


@pytest.mark.parametrize("runner", ["os.getcwd", "x" * 5000])
def test_a_runner_that_cannot_start_is_one_sentence(tmp_path, runner):
    (tmp_path / "corpus.txt").write_text("the fox.\n\na hen.\n")
    sentence = r"`runner=.*Beam cannot start it .* name a runner"
    with pytest.raises(UserError, match=sentence) as said:
        beam_runner.run_beam(make_config(tmp_path, runner=runner))
    assert len(str(said.value)) < 500


def test_a_checkout_does_not_ship_a_package_with_other_names(tmp_path):
    arguments = ("--setup_file=./setup.py",)
    config = make_config(tmp_path, runner="DirectRunner", beam_arguments=arguments)
    with pytest.raises(UserError, match=r"started from a checkout, .*pip install '\.\[beam\]'"):
        beam_runner.run_beam(config)
