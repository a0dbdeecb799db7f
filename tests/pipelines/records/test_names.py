from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.names import set_of_shard, shard_names

NAMES = st.text(st.characters(exclude_characters=",/\\\n"), min_size=1, max_size=12)


@given(NAMES, st.integers(1, 30))
def test_a_numbered_shard_names_its_set(name, count):
    shards = shard_names([f"data/{name}"], count)
    assert len(set(shards)) == count
    assert {set_of_shard(shard) for shard in shards} == {(f"data/{name}", f"{count:05d}")}
