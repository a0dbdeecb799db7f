import pytest
import tensorflow_datasets as tfds

from tests.support.pretraining_corpus import RECIPE, make_shards


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
