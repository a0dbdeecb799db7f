import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.names import leftover_pattern, set_of_shard, shard_names

NAMES = st.text(st.characters(exclude_characters=",/\\\n"), min_size=1, max_size=12)


@given(NAMES, st.integers(1, 30))
def test_a_numbered_shard_names_its_set(name, count):
    shards = shard_names([f"data/{name}"], count)
    assert len(set(shards)) == count
    assert {set_of_shard(shard) for shard in shards} == {(f"data/{name}", f"{count:05d}")}


@pytest.mark.parametrize(
    "name", ["x", "x-00000", "x-0000-of-00001", "x-00000-of-00001.index", "-00000-of-00001"]
)
def test_other_names_are_no_shards(name):
    assert set_of_shard(name) is None


@pytest.mark.parametrize(
    ("name", "is_left"),
    [
        (".x.tfrecord-00000-of-00002.host.17.incomplete", True),
        (".x.tfrecord.recipe.json.17.incomplete", True),
        (".x.tfrecord-512-00000-of-00002.host.17.incomplete", False),
        (".xytfrecord.17.incomplete", False),
        ("x.tfrecord-00000-of-00002", False),
    ],
)
def test_only_the_set_s_own_unfinished_files_are_left_overs(name, is_left):
    assert bool(leftover_pattern("x.tfrecord").fullmatch(name)) == is_left
