"""Whatever a file that data work writes holds when it is read again: used, or one sentence."""

import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.start import with_kept_options
from pipelines.records.check import described_words, find_shards
from pipelines.records.description import metadata_files
from pipelines.records.reader import RecordReader
from pipelines.tasks.choices.task import ChoiceTask
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.questions.answerer import ServingSettings
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.tagging.options import RunNerConfig, TaggingConfig
from pipelines.tasks.tagging.task import TaggingTask
from pipelines.vectors.index import VectorIndex
from tests.pipelines.fine_tuning.test_start import trained
from tests.support.damage import DAMAGES, damage, other_files, others
from tests.support.pretraining_corpus import make_shards


def read_description(path):
    shards = find_shards([str(path.parent)])
    described_words(shards)
    for shard in shards:
        shard.description.summary()
        own = replace(shard.description, source={"documents": 1})
        metadata_files("train.tfrecord", own, [str(path)])


def write_description(folder):
    make_shards(folder)
    return folder / "out" / "train.tfrecord.recipe.json"


def write_index(name, folder):
    index = VectorIndex.create(folder / "index", size=2)
    index.add(["a", "b"], vectors=[[0, 1], [1, 0]])
    return folder / "index" / name


def read_index(path):
    index = VectorIndex.open(path.parent)
    index.search([[1, 0]], 1)
    index.check()


FILES = {
    "description of shards": (write_description, read_description),
    **{
        f"{name} of an index": (partial(write_index, name), read_index)
        for name in ("description.json", "blocks")
    },
}


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_used_or_refused_in_one_sentence(tmp_path, kind):
    write, read = FILES[kind]
    path = write(tmp_path)
    read(path)
    for _ in other_files(path):
        check(read, path)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["blocks", "vectors", "rows", "ends"])
def test_a_damaged_file_of_an_index_is_used_or_refused_in_one_sentence(tmp_path, name, how):
    path = write_index(name, tmp_path)
    damage(path, how)
    check(read_index, path)


def check(read, *arguments):
    """Sees that a reader gives a value, or one sentence without raw control characters."""
    fault = fault_of(read, *arguments)
    assert len(fault) <= 1200
    assert not re.search("[\x00-\x1f\x7f]", fault)
    return fault


def fault_of(read, *arguments):
    try:
        read(*arguments)
    except UserError as error:
        return str(error)
    return ""


SETTINGS = {
    "labels": {
        "task": "labelled texts",
        "max_seq_length": 16,
        "num_texts": 1,
        "text_column": "text",
        "text_pair_column": None,
        "label_column": ["label"],
        "header": True,
        "ignored_labels": ["-"],
        "dev_share": 0.1,
        "dev_seed": 3,
        "class_weights": {"a": 1.0, "b": 2.5},
        "label_units": [0.5, 2.0],
        "long_text": "windows",
        "doc_stride": 4,
        "window_answers": "mean",
    },
    "tags": {
        "task": "ner",
        "tagging_scheme": "iob2",
        "tag_unit": "words",
        "context": "document",
        "doc_stride": 0,
        "columns": 2,
        "word_column": 1,
        "tag_column": -1,
    },
    "questions": {
        "task": "squad",
        "max_seq_length": 100,
        "doc_stride": 64,
        "max_query_length": 32,
        "version_2_with_negative": True,
        "n_best_size": 5,
        "max_answer_length": 9,
        "null_score_diff_threshold": -1.5,
    },
    "endings": {"task": "swag", "num_choices": 4},
}


def use_labels(model, folder):
    own = LabelledTextsConfig(dev_file=str(folder / "dev.tsv"))
    with_kept_options(RunClassifierConfig(output_dir=folder, own=own), model)


def use_tags(model, folder):
    TaggingTask.of_model(model.config)
    files = TaggingConfig(test_file=folder / "test.txt")
    with_kept_options(RunNerConfig(output_dir=folder, files=files), model)


def use_questions(model, folder):
    ServingSettings.of(model.config)
    with_kept_options(RunSquadConfig(output_dir=folder), model)


def use_endings(model, _folder):
    ChoiceTask.of_model(model.config)


USERS = {"labels": use_labels, "tags": use_tags, "questions": use_questions, "endings": use_endings}


@pytest.mark.parametrize("family", SETTINGS)
def test_settings_of_a_task_are_used_or_refused_by_their_name(tmp_path, family):
    # Of another task, a tagger is a stranger's: its labels say what it tags.
    names = {"id2label": {"0": "O", "1": "B-PER"}} if family == "tags" else {}
    sound = trained(model_config=BertConfig(vocab_size=30, extra=names), **SETTINGS[family])
    USERS[family](sound, tmp_path)
    for name, value in SETTINGS[family].items():
        for other in others(value):
            config = with_task_settings(sound.config, {**SETTINGS[family], name: other})
            fault = check(USERS[family], replace(sound, config=config), tmp_path)
            assert not fault or name in fault


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    make_shards(folder)
    return folder / "out"


@pytest.fixture
def shard(made, tmp_path):
    """A shard of a set that a test may damage."""
    return shutil.copytree(made, tmp_path / "out") / "train.tfrecord-00000-of-00003"


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_index_of_records_is_as_good_as_none(shard, how):
    expected = records_of(shard)
    damage(shard.with_name(f"{shard.name}.index"), how)
    assert records_of(shard) == expected


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_shard_is_named_or_read_all_the_same(shard, how):
    expected, found = records_of(shard), []
    damage(shard, how)
    fault = check(lambda path: found.append(records_of(path)), shard)
    # A frame repeats what the index says: there a byte may be another one.
    assert found == [expected] if how == "first byte flipped" else str(shard) in fault


def records_of(shard):
    reader = RecordReader([shard])
    return reader.read(np.arange(len(reader)))
