import dataclasses
import json

import pytest
import tensorflow_datasets as tfds
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.description import (
    Description,
    ShardEntry,
    metadata_files,
    set_of_shard,
    shard_names,
)
from tests.support.pretraining_corpus import RECIPE, make_shards

NAMES = st.text(st.characters(exclude_characters=",/\\\n"), min_size=1, max_size=12)


@given(NAMES, st.integers(1, 30))
def test_a_numbered_shard_names_its_set(name, count):
    shards = shard_names([f"data/{name}"], count)
    assert len(set(shards)) == count
    assert {set_of_shard(shard) for shard in shards} == {(f"data/{name}", f"{count:05d}")}


SHARDS = (
    ShardEntry(
        "x-00000-of-00002", 2_000_000, "00c0ffee",
        {"examples": 30, "tokens": 3000, "random_next": 12, "masked": 450},
    ),
    ShardEntry(
        "x-00001-of-00002", 1_000_000, "0badcafe",
        {"examples": 10, "tokens": 1000, "random_next": 8, "masked": 150},
    ),
)  # fmt: skip
DESCRIPTION = Description(
    recipe=Recipe(max_seq_length=64, mask_probabilities=(0.5, 0.25, 0.25)),
    vocabulary=VocabularyFacts.of(Vocabulary([*SPECIAL_TOKENS, "[unused0]", "the", "##s"])),
    tokenizer={"do_lower_case": True, "strip_accents": None},
    source={"files": ["a.txt"], "documents": 1234},
    shards=SHARDS,
    versions={"python": "3.11"},
)


def test_a_description_is_read_as_it_was_written(tmp_path):
    (tmp_path / "x").write_text(DESCRIPTION.to_text())
    read = Description.read(tmp_path / "x")
    assert read.to_text() == DESCRIPTION.to_text()
    assert (read.recipe, read.shards) == (DESCRIPTION.recipe, SHARDS)
    assert read.vocabulary.ordinary == ((6, 8),)
    assert read.vocabulary.is_continuation.tolist() == [False] * 7 + [True]


def test_the_file_has_the_keys_that_readers_rely_on():
    values = json.loads(DESCRIPTION.to_text())
    assert list(values) == [
        "format", "recipe", "vocabulary", "tokenizer", "source", "counts", "versions", "shards",
    ]  # fmt: skip
    assert values["counts"] == {"examples": 40, "tokens": 4000, "random_next": 20, "masked": 600}
    assert list(values["shards"][0]) == ["file", "bytes", "crc32c", "counts"]
    assert values["tokenizer"] == {"do_lower_case": True, "strip_accents": None}


@pytest.mark.parametrize(
    ("content", "full", "message"),
    [
        (b"123456789", True, None),
        (b"12345678", False, r"this shard is truncated \(8 of 9 bytes\)"),
        (b"1234567890", False, r"this shard is longer than it was \(10 of 9 bytes\)"),
        (b"123456780", True, "this shard was altered since it was written"),
        (b"123456780", False, None),
    ],
)
def test_a_shard_is_checked_by_size_and_if_wanted_by_checksum(tmp_path, content, full, message):
    path = tmp_path / "x"
    path.write_bytes(content)
    entry = ShardEntry("x", 9, "e3069283", {})
    if message is None:
        entry.check(path, full=full)
        return
    with pytest.raises(UserError, match=f"x: {message}"):
        entry.check(path, full=full)


def test_the_summary_says_the_share_of_unknown_words():
    source = {**DESCRIPTION.source, "words": 2000, "unknown_words": 31}
    described = dataclasses.replace(DESCRIPTION, source=source)
    assert described.summary().endswith("15.00 masked; 1.6 % of the words are [UNK].")


def test_sets_whose_names_begin_alike_are_splits_of_their_own():
    found = ["a/wiki.dev.tfrecord.recipe.json", "a/x.tfrecord.recipe.json"]
    own = dataclasses.replace(DESCRIPTION, shards=())
    files = metadata_files("a/wiki.train.tfrecord", own, found, lambda _: own)
    assert list(files)[-1] == "a/wiki.train.tfrecord.recipe.json"
    splits = [split["name"] for split in json.loads(files["a/dataset_info.json"])["splits"]]
    assert splits == ["wiki_dev_tfrecord", "wiki_train_tfrecord", "x"]


@pytest.mark.slow
def test_tensorflow_datasets_opens_a_folder_of_two_sets(tmp_path):
    make_shards(tmp_path)
    make_shards(tmp_path, output="out/held-out.tfrecord", num_shards=1)
    builder = tfds.builder_from_directory(tmp_path / "out")
    assert set(builder.info.splits) == {"train", "held_out"}
    assert builder.info.splits["train"].num_shards == 3
    examples = list(tfds.as_numpy(builder.as_dataset(split="train")))
    assert len(examples) == builder.info.splits["train"].num_examples > 50
    assert examples[0]["input_ids"].shape == (RECIPE.max_seq_length,)
    assert examples[0]["masked_lm_weights"].dtype == "float32"
