"""The model that a fine-tuning run starts from, or scores."""

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import FineTuningConfig


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
