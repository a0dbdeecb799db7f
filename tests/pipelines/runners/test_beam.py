"""The Beam runner makes the local runner's bytes, on every Beam runner within reach.

The DirectRunner is always tried. Where a job service is named, it is tried too:
`KERAS_BERT_FLINK_ENDPOINT=localhost:8099` (Beam's Flink job server) and
`KERAS_BERT_PRISM_ENDPOINT=localhost:8073` (Prism).
"""

import os

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.unknown_words import WordCount
from pipelines.runners.local import run_local
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
    true_cut = beam_runner.cut_into_blocks
    monkeypatch.setattr(beam_runner, "cut_into_blocks", lambda p, f: true_cut(p, f, 700))


def _shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.endswith(".json")}


def test_direct_runner_makes_the_same_bytes(tmp_path, expected, small_blocks):
    config = make_config(tmp_path, runner="DirectRunner", num_shards=0)
    beam_runner.run_beam(config)
    assert _shards(contents(tmp_path / "out")) == _shards(expected)


def test_what_a_killed_worker_left_is_removed_and_other_sets_stay(tmp_path, expected):
    (tmp_path / "out").mkdir()
    aside = f"-00000-of-00002.{32 * 'c'}.incomplete"
    for name in ("train.tfrecord", "train.tfrecord-512"):
        (tmp_path / "out" / f".{name}{aside}").write_text("half")
    beam_runner.run_beam(make_config(tmp_path, runner="DirectRunner", num_shards=0))
    other = f".train.tfrecord-512{aside}"
    assert contents(tmp_path / "out") == {**expected, other: b"half"}


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


@pytest.mark.parametrize("runner", ["no_such.Runner", "os.getcwd", "x" * 5000])
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


def test_unknown_words_are_counted_as_the_local_runner_counts_them(tmp_path, small_blocks):
    (tmp_path / "corpus.txt").write_text("The fox saw a dog. It barks\n\nthe hen ran.\n" * 40)
    made = beam_runner.run_beam(make_config(tmp_path, runner="DirectRunner", num_shards=1))
    assert made.word_count() == WordCount(words=40 * 12, unknown=40 * 3)
    assert run_local(make_config(tmp_path, "local/x")).word_count() == made.word_count()
