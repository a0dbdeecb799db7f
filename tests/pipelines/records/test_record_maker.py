"""Records of planned examples, put together once more token by token."""

import dataclasses
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.pretraining_data.pairs import PlannedExamples
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.record_maker import RecordMaker, write_shard
from pipelines.records.serialise import masked_crcs

FACTS = VocabularyFacts.of(Vocabulary([*SPECIAL_TOKENS, *(f"w{n}" for n in range(40))]))
RECIPE = Recipe(max_seq_length=12, max_predictions_per_seq=3, masking="none")
TOKENS = np.arange(5, 45, dtype=np.uint16)
PLAN = PlannedExamples(
    keys=np.array([3, 5, 9], np.uint64),
    start_a=np.array([0, 10, 30]), len_a=np.array([3, 1, 5], np.uint16),
    start_b=np.array([20, 11, 0]), len_b=np.array([4, 6, 1], np.uint16),
    is_random=np.array([True, False, True]),
)  # fmt: skip


def examples(blocks) -> list[dict[str, list]]:
    """The examples in framed records."""
    found = []
    for data, sizes in blocks:
        ends = np.cumsum(sizes)
        for start, end in zip(ends - sizes, ends, strict=True):
            content = data[start + 12 : end - 4].tobytes()
            features = tf.train.Example.FromString(content).features.feature
            found.append(
                {
                    name: list(feature.float_list.value or feature.int64_list.value)
                    for name, feature in features.items()
                }
            )
    return found


@pytest.mark.parametrize("pairs", [True, False])
def test_tokens_are_framed_and_padded(pairs):
    recipe = dataclasses.replace(RECIPE, do_next_sentence=pairs)
    plan = PLAN if pairs else dataclasses.replace(PLAN, len_b=np.zeros(3, np.uint16))
    made = examples(RecordMaker(recipe, FACTS).blocks(TOKENS, plan))
    special = FACTS.special
    for number, example in enumerate(made):
        a = TOKENS[plan.start_a[number] :][: plan.len_a[number]].tolist()
        b = TOKENS[plan.start_b[number] :][: plan.len_b[number]].tolist()
        ids = [special.cls, *a, special.sep, *([*b, special.sep] if pairs else [])]
        segments = [0] * (len(a) + 2) + [1] * (len(ids) - len(a) - 2)
        padding = [0] * (12 - len(ids))
        assert example == {
            "input_ids": ids + padding,
            "input_mask": [1] * len(ids) + padding,
            "segment_ids": segments + padding,
            "next_sentence_labels": [int(plan.is_random[number])],
        }


def test_masked_records_hold_what_was_hidden():
    plain = examples(RecordMaker(RECIPE, FACTS).blocks(TOKENS, PLAN))
    static = dataclasses.replace(RECIPE, masking="static", mask_probabilities=(1.0, 0.0, 0.0))
    maker = RecordMaker(static, FACTS)
    for before, after in zip(plain, examples(maker.blocks(TOKENS, PLAN)), strict=True):
        restored = list(after["input_ids"])
        for slot, weight in enumerate(after["masked_lm_weights"]):
            if weight:
                position = after["masked_lm_positions"][slot]
                assert restored[position] == FACTS.special.mask
                restored[position] = after["masked_lm_ids"][slot]
        assert restored == before["input_ids"]
    assert maker.counts == {"examples": 3, "random_next": 2, "tokens": 29, "masked": 5}


RECORDS = [b"one", b"", b"three" * 50, b"four"]


def frame_records(records):
    """Records as they stand in a TFRecord file: length, its checksum, record, its checksum."""
    lengths = [len(record).to_bytes(8, "little") for record in records]
    frames = [
        b"".join((length, masked_crcs([length]).tobytes(), record, masked_crcs([record]).tobytes()))
        for length, record in zip(lengths, records, strict=True)
    ]
    return np.frombuffer(b"".join(frames), np.uint8), np.array([len(frame) for frame in frames])


def read_by_tensorflow(*paths: str | Path) -> list[bytes]:
    """TensorFlow checks both checksums of each record."""
    return [record.numpy() for record in tf.data.TFRecordDataset([str(path) for path in paths])]


def test_tensorflow_reads_what_was_written(tmp_path):
    path = tmp_path / "x.tfrecord"
    write_shard(str(path), [frame_records(RECORDS[:1]), frame_records(RECORDS[1:])], {})
    assert read_by_tensorflow(path) == RECORDS


def test_the_entry_tells_size_and_checksum_of_the_file(tmp_path):
    path = tmp_path / "x.tfrecord"
    entry = write_shard(str(path), [frame_records(RECORDS)], {"examples": 4})
    data = path.read_bytes()
    assert (entry.file, entry.bytes, entry.counts) == ("x.tfrecord", len(data), {"examples": 4})
    assert int(entry.crc32c, 16) == google_crc32c.value(data)
