"""What pre-training starts from: a trained model, or a new one for the vocabulary of the shards."""

from collections.abc import Sequence

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.tokenization.text_settings import Casing
from pipelines.records.check import find_shards
from pipelines.records.paths import with_local_copies
from pipelines.runs.pretraining_config import RunPretrainingConfig


def find_pretraining_start(config: RunPretrainingConfig) -> ModelSource:
    """Finds the model of a run; the shards say the casing where the model does not.

    Raises:
        UserError: nothing says what the model is like, or two things that do not fit together do.
    """
    return find_model(
        config.init_checkpoint,
        bert_config_file=config.bert_config_file,
        vocab_file=config.vocab_file,
        do_lower_case=config.do_lower_case,
        model_size=config.model_size,
        told=casing_of_shards(config.input_file),
        default_lower_case=True,
    )


def casing_of_shards(input_files: Sequence[str]) -> Casing:
    """What the first shards that describe themselves say of their text."""
    shards = find_shards(with_local_copies(input_files))
    described = next((shard.description for shard in shards if shard.description), None)
    return Casing(described.do_lower_case, described.strip_accents) if described else Casing()
