"""The Beam runner makes the local runner's bytes, on every Beam runner within reach.

The DirectRunner is always tried. Where a job service is named, it is tried too:
`KERAS_BERT_FLINK_ENDPOINT=localhost:8099` (Beam's Flink job server) and
`KERAS_BERT_PRISM_ENDPOINT=localhost:8073` (Prism).
"""

import gzip
import os

import pytest

from keras_bert_impl.errors import UserError
from pipelines.pretraining_data import documents
from pipelines.records.description import Description
from tests.support.pretraining_corpus import contents, make_config, make_shards, write_corpus

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
    with pytest.raises(UserError, match=r"holds one document, so no .* same .* random\.$"):
        beam_runner.run_beam(config)
    assert not (tmp_path / "out" / "train.tfrecord.recipe.json").exists()


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    config = make_config(tmp_path, "corpus.txt/train", runner="DirectRunner")
    with pytest.raises(UserError, match=r"corpus\.txt: this folder cannot be written to"):
        beam_runner.run_beam(config)


def test_what_a_worker_cannot_write_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"file/t: cannot be written"),
        beam_runner._create_whole(f"{tmp_path}/file/t"),
    ):
        pass


def test_a_casing_that_does_not_go_with_the_vocabulary_is_warned_of(tmp_path):
    config = make_config(tmp_path, "corpus.txt/train", runner="DirectRunner")
    with (tmp_path / "vocab.txt").open("a") as file:
        file.writelines(f"Word{number}\n" for number in range(20))
    with pytest.warns(UserWarning, match="is this a cased vocabulary"), pytest.raises(UserError):
        beam_runner.run_beam(config)


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


def run_direct(folder, **changes):
    return beam_runner.run_beam(make_config(folder, runner="DirectRunner", **changes))


def test_an_older_set_of_the_name_goes_when_the_new_one_begins(tmp_path, monkeypatch):
    make_shards(tmp_path, num_shards=4)
    run_direct(tmp_path, num_shards=2)
    shards = [f"train.tfrecord-{n:05d}-of-00002" for n in range(2)]
    files = [*shards, *(f"{name}.index" for name in shards), "train.tfrecord.recipe.json"]
    found = sorted(path.name for path in (tmp_path / "out").glob("train.tfrecord*"))
    assert found == sorted(files)


def test_a_run_that_ends_early_leaves_no_description_of_an_older_set(tmp_path):
    config = make_shards(tmp_path, num_shards=2)
    beam_runner._choose_shards(10, config, ["corpus.txt"])
    assert not list((tmp_path / "out").glob("train.tfrecord*"))


@pytest.mark.parametrize("num_shards", [0, 1])
def test_text_that_the_shards_would_replace_is_kept(tmp_path, num_shards):
    text = tmp_path / "a.txt-00000-of-00001"
    write_corpus(tmp_path).rename(text)
    before = text.read_bytes()
    asked = {"input_file": str(text), "output": "a.txt", "num_shards": num_shards}
    with pytest.raises(UserError, match=r"a\.txt-.*: is input, but .* another `output_file`"):
        run_direct(tmp_path, **asked)
    assert text.read_bytes() == before


@pytest.mark.parametrize("pattern", ["c*.txt", "[c]*.txt"])
def test_empty_files_are_left_out(tmp_path, monkeypatch, pattern):
    write_corpus(tmp_path)
    (tmp_path / "corpus-2.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert documents.find_input(pattern, beam_runner._match) == ["corpus.txt"]


def test_a_packed_text_is_to_be_unpacked_first(tmp_path):
    packed = tmp_path / "corpus.txt.gz"
    packed.write_bytes(gzip.compress(b"the fox.\n\na hen.\n"))
    with pytest.raises(UserError, match=r"corpus\.txt\.gz: is packed; unpack it first"):
        run_direct(tmp_path, input_file=str(packed))


def test_a_text_that_is_cut_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    true_prepare = documents.prepare

    def prepare(*args):
        found = true_prepare(*args)
        (tmp_path / "corpus.txt").write_text("the fox.\n\na hen.\n")
        return found

    monkeypatch.setattr(documents, "prepare", prepare)
    with pytest.raises(UserError, match=r"corpus\.txt: was changed while it was read"):
        run_direct(tmp_path)
