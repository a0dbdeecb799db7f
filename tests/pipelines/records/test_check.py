"""TensorFlow's file system in memory (ram://) stands for a remote one."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.unknown_words import WordCount
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import match_files
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.records.check import Expected, Shard, check_shards, described_words, find_shards
from pipelines.records.description import Description
from tests.support.pretraining_corpus import RECIPE, make_shards

FITTING = Expected(RECIPE.max_seq_length, RECIPE.max_predictions_per_seq)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make_shards(folder)
    return folder


@pytest.fixture
def shards(made, tmp_path) -> Path:
    """A copy that a test may damage."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def _check(folder: Path, expected: Expected = FITTING, name: str = "train.tfrecord") -> None:
    check_shards(find_shards([str(folder / name)]), expected)


@pytest.mark.parametrize("name", ["train.tfrecord", "*", ""])
def test_a_set_is_found_by_its_name_a_glob_or_its_folder(shards, name):
    found = find_shards([str(shards / name)])
    assert [shard.path.name[-8:] for shard in found] == ["of-00003"] * 3
    assert all(shard.description is not None for shard in found)


def test_a_glob_may_name_a_part_of_a_set(shards):
    found = find_shards([str(shards / "train.tfrecord-0000[02]-*")])
    assert [shard.path.name[-14:] for shard in found] == ["00000-of-00003", "00002-of-00003"]


def test_a_name_that_matches_nothing_is_refused(shards):
    with pytest.raises(UserError, match="matches no file"):
        find_shards([str(shards / "*.nothing")])


def test_right_shards_pass(shards):
    sha256 = Vocabulary.load(shards.parent / "vocab.txt").sha256
    _check(shards, Expected(32, 4, sha256, do_lower_case=True))
    _check(shards, dataclasses.replace(FITTING, max_predictions_per_seq=9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_seq_length": 64}, "does not fit .*=64`; pass `max_seq_length=32`"),
        ({"max_predictions_per_seq": 3}, "seq=4`, which .* pass `max_predictions_per_seq=4`"),
        ({"vocabulary_sha256": "0" * 64}, "another vocabulary"),
        ({"do_lower_case": False}, "made with `do_lower_case=True`"),
    ],
    ids=str,
)
def test_shards_for_another_model_are_refused(shards, change, message):
    with pytest.raises(UserError, match=message):
        _check(shards, dataclasses.replace(FITTING, **change))


def test_a_bare_file_does_not_stand_for_the_set_of_its_name(shards):
    (shards / "train.tfrecord").write_bytes(b"of another tool")
    with pytest.raises(UserError, match=r"train\.tfrecord: is a file, and no shard of the set"):
        _check(shards)
    _check(shards, name="train.tfrecord-*")


def test_descriptions_are_read_once_however_many_files_are_named(shards, monkeypatch):
    read, true_read = [], Description.read
    monkeypatch.setattr(Description, "read", lambda path: read.append(path) or true_read(path))
    assert len(find_shards(sorted(map(str, shards.glob("*-of-00003"))))) == 3
    assert len(read) == 1


def test_a_missing_shard_is_named(shards):
    (shards / "train.tfrecord-00001-of-00003").unlink()
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is miss"):
        _check(shards, name="train.tfrecord-*")


@pytest.mark.parametrize("damage", ["{", '{"format": 99}'])
def test_a_broken_description_is_named(shards, damage):
    (shards / "train.tfrecord.recipe.json").write_text(damage)
    with pytest.raises(UserError, match=r"train.tfrecord.recipe.json: "):
        _check(shards)


def test_bare_shards_of_a_stopped_run_or_of_two_sets_are_refused(shards):
    (shards / "train.tfrecord.recipe.json").unlink()
    pattern = str(shards / "train.tfrecord-*")
    assert len(find_shards([pattern])) == 3
    shutil.copy(shards / "train.tfrecord-00001-of-00003", shards / "train.tfrecord-00001-of-00004")
    with pytest.raises(UserError, match="holds shards of two sets, of 3 and 4 files"):
        find_shards([pattern])
    (shards / "train.tfrecord-00001-of-00004").unlink()
    (shards / "train.tfrecord-00001-of-00003").unlink()
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is missing"):
        find_shards([pattern])


def test_the_words_of_sets_are_added_up_each_once(made):
    (described,) = {id(s.description): s.description for s in find_shards([f"{made}/out"])}.values()
    few = Shard(Path("a"), dataclasses.replace(described, source={"words": 9, "unknown_words": 2}))
    many = Shard(
        Path("b"), dataclasses.replace(described, source={"words": 90, "unknown_words": 1})
    )
    assert described_words([few, few, many]) == WordCount(words=99, unknown=3)


def test_shards_that_do_not_say_their_words_have_none(made):
    shards = find_shards([f"{made}/out"])
    assert described_words(shards) is not None
    assert described_words([*shards, Shard(Path("bare"))]) is None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt", "in/c.txt", ".a.txt.17.incomplete", ".work/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "b.txt", "in"]),
        ("**.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "in/c.txt"]),
        ("[b].txt", ["b.txt"]),
        (".work/*", [".work/d.txt"]),
        ("none.txt", ["none.txt"]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_patterns_match_as_in_a_shell_and_hidden_files_only_by_name(pattern, found):
    assert match_files(pattern) == found
    absolute = [f"{Path.cwd()}/{name}" for name in found]
    assert match_files(f"{Path.cwd()}/{pattern}") == absolute


@pytest.fixture
def bucket(tmp_path) -> str:
    make_shards(tmp_path)
    address = f"ram://{tmp_path.name}"
    tf.io.gfile.makedirs(address)
    for path in (tmp_path / "out").iterdir():
        with tf.io.gfile.GFile(f"{address}/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    return address


def test_a_remote_set_is_read_from_its_copy(bucket, tmp_path):
    there = PretrainingEvaluation([f"{bucket}/train.tfrecord-*"], 8, Expected(32, 4))
    here = PretrainingEvaluation([str(tmp_path / "out")], 8, Expected(32, 4))
    assert there.num_examples == here.num_examples
    for first, second in zip(there.batches(), here.batches(), strict=True):
        assert (first["input_ids"] == second["input_ids"]).all()


@pytest.mark.parametrize("name", ["/train.tfrecord-*", ""])
def test_a_shard_that_is_missing_there_is_missing_here(bucket, name):
    tf.io.gfile.remove(f"{bucket}/train.tfrecord-00001-of-00003")
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is missing"):
        find_shards([f"{bucket}{name}"])
