"""The model that a fine-tuning run starts from, or scores."""

import logging
from dataclasses import replace
from typing import TypeVar

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.options import options_of
from keras_bert_impl.serving.task_settings import task_settings
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import FineTuningConfig

_LOGGER = logging.getLogger(__name__)

AnyConfig = TypeVar("AnyConfig", bound=FineTuningConfig)


def starting_point(config: FineTuningConfig, run: RunDirectory) -> ModelSource:
    """The given checkpoint; without training, the run's own model where there is one.

    Of several models that answer together it is the first one.

    Raises:
        UserError: there is no such model, or no vocabulary.
    """
    checkpoint = config.members[0] if config.members else config.init_checkpoint
    if not config.members and not config.do_train and run.model.is_dir():
        checkpoint = str(run.model)
    return find_model(
        checkpoint,
        bert_config_file=config.bert_config_file,
        vocab_file=config.vocab_file,
        do_lower_case=config.do_lower_case,
        default_lower_case=True,
    )


def with_trained_length(config: AnyConfig, start: ModelSource) -> AnyConfig:
    """Without training, rows are as long as in training, unless another length is asked for.

    Args:
        config: the run; a `max_seq_length` that is the default counts as not asked for.
        start: the model that is scored or answers.
    """
    default = next(x.default for x in options_of(type(config)) if x.name == "max_seq_length")
    known = task_settings(start.config).get("max_seq_length", default)
    if config.do_train or config.max_seq_length != default or known == default:
        return config
    _LOGGER.info("max_seq_length = %d, as %s was trained", known, start.checkpoint)
    return replace(config, max_seq_length=known)
