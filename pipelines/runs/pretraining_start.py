"""The model and the shards that a pre-training run starts from.

Nothing here loads TensorFlow, so that a mistake in a path or an option is told at once.
"""

from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import options_named
from keras_bert_impl.tokenization.text_settings import Casing
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.records.check import find_shards
from pipelines.runs.pretraining_config import RunPretrainingConfig, options_of_phase


def check_start(config: RunPretrainingConfig) -> None:
    """Looks at the options, the shards and the model of a run before TensorFlow is loaded.

    The shards of a run that is finished may be gone: they are not looked for.
    """
    check_asked(config)
    if RunDirectory(Path(config.output_dir)).finished_step() is None:
        checked_start(config)
        for number, phase in enumerate(config.phases()):
            with options_of_phase(number):
                find_shards(phase.input_file)
        with options_named({"input_file": "eval_input_file"}):
            find_shards(config.eval_input_file or ())


def check_asked(config: RunPretrainingConfig) -> None:
    """Sees that something is asked for, and of some data."""
    if not (config.do_train or config.do_eval):
        raise UserError("nothing to do; give `do_train=True` or `do_eval=True`.")
    if not config.input_file:
        raise UserError("`input_file` is missing; name the shards of create_pretraining_data.")
    if config.do_train:
        config.training.check_evaluates(config.do_eval or bool(config.training.eval_steps))


def checked_start(config: RunPretrainingConfig) -> ModelSource:
    """The model of a run, which fits its objective and the lengths of its phases."""
    start = find_pretraining_start(config)
    config.check_model(start.config)
    for number, phase in enumerate(config.phases()):
        with options_of_phase(number):
            start.config.check_length(phase.max_seq_length)
    return start


def find_pretraining_start(config: RunPretrainingConfig) -> ModelSource:
    """Finds the model of a run; the shards say the casing where the model does not."""
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
    """Reads the text settings of the first shards that describe themselves."""
    shards = find_shards(input_files)
    described = next((shard.description for shard in shards if shard.description), None)
    if described is None:
        return Casing()
    return Casing(described.do_lower_case, described.strip_accents, described.unicode_form)
