from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import pooling_of
from keras_bert_impl.options import settings_of
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.options import FineTuningConfig, ManyRunsConfig
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from tests.support.tiny_bert import TINY


def config(**changes):
    return FineTuningConfig(output_dir=Path("run"), **changes)


def test_a_resumed_run_has_the_same_rows_in_the_same_order_and_the_same_start():
    assert set(settings_of(config())) == {"max_seq_length", "encoder_bilstm"}


def test_a_head_on_a_left_to_right_model_reads_the_last_token_unless_told_otherwise(tmp_path):
    given = {"task_name": "CoLA", "data_dir": tmp_path, "output_dir": tmp_path}
    causal = TINY.replace(causal=True)
    trained = RunClassifierConfig(**given, do_train=True)
    assert pooling_of(trained.configure(causal)) == "last"
    assert trained.configure(TINY) is TINY
    assert pooling_of(RunClassifierConfig(**given).configure(causal)) == "pooler"  # as it says
    chosen = RunClassifierConfig(**given, do_train=True, pooling="pooler")
    assert pooling_of(chosen.configure(causal)) == "pooler"
    assert pooling_of(config(do_train=True).configure(causal)) == "last"


def test_a_run_that_ends_by_the_clock_searches_no_number_of_epochs():
    hours = TrainingConfig(train_hours=1.0)
    with pytest.raises(UserError, match=r"`search=paper` tries numbers of epochs"):
        config(many=ManyRunsConfig(search="paper"), training=hours)
    config(many=ManyRunsConfig(num_seeds=3), training=hours)


def test_a_run_that_ends_by_the_clock_warms_up_for_less_than_all_of_it():
    hours = TrainingConfig(train_hours=1.0)
    with pytest.raises(UserError, match=r"`warmup_proportion=1.0`"):
        config(do_train=True, training=hours, warmup_proportion=1.0)
    config(do_train=True, training=hours, warmup_proportion=0.5)


def own(**files):
    return LabelledTextsConfig(**files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing says what to learn; give `task_name` and `data_dir`"),
        ({"task_name": "CoLA"}, "`task_name=CoLA` needs `data_dir`"),
        (
            {"task_name": "CoLA", "own": own(train_file="t.csv")},
            "`train_file` is for files of one's own",
        ),
        (
            {"task_name": "CoLA", "data_dir": Path("d"), "own": own(class_weights=("balanced",))},
            "`class_weights` is for files of one's own; leave `task_name` out",
        ),
    ],
)
def test_there_is_a_task_of_glue_or_a_file_of_ones_own(options, message):
    with pytest.raises(UserError, match=message):
        RunClassifierConfig(output_dir=Path("run"), **options)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"training": TrainingConfig(precision="int8")},
            "`precision=int8` needs `engine=openvino`",
        ),
        ({"engine": "openvino", "do_train": True}, "`engine=openvino` .* trains nothing"),
        (
            {"engine": "openvino", "training": TrainingConfig(precision="float16")},
            "`precision=float16`",
        ),
    ],
)
def test_an_engine_that_only_answers_is_asked_for_answers_only(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        config(**changes)
