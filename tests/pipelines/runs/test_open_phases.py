import dataclasses

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.runs.pretraining import open_phases
from pipelines.runs.pretraining_config import PhaseConfig
from tests.support.pretraining_run import GOLDEN, shorter_shard
from tests.support.tiny_bert import golden_config

LONG = PhaseConfig(
    input_file=(str(GOLDEN / "train.tfrecord"),),
    num_train_steps=100,
    train_batch_size=8,
    learning_rate=1e-3,
    max_seq_length=64,
    max_predictions_per_seq=10,
)


def opened(*configs, **workers):
    text = TextSettings(Vocabulary.load(GOLDEN / "vocab.txt"))
    return open_phases(configs, text, golden_config(), seed=1, shuffle=True, **workers)


def test_each_phase_reads_its_own_shards_in_its_own_shape(tmp_path):
    path = shorter_shard(tmp_path / "short.tfrecord", length=32, predictions=5)
    short = dataclasses.replace(
        LONG,
        input_file=(str(path),),
        train_batch_size=4,
        max_seq_length=32,
        max_predictions_per_seq=5,
    )
    phases = opened(LONG, short)
    assert [phase.num_steps for phase in phases] == [100, 100]
    shapes = [next(phase.batches.batches_from(0))["input_ids"].shape for phase in phases]
    assert shapes == [(8, 64), (4, 32)]


def test_shards_of_another_length_are_refused():
    with pytest.raises(UserError, match="does not fit `max_seq_length=32`"):
        opened(dataclasses.replace(LONG, max_seq_length=32))
