"""Several models that answer together: the mean of their logits."""

import logging
from collections.abc import Callable, Sequence

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import Progress
from pipelines.inputs.row_batches import RowEvaluation
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.runs.engine_answers import Predicts
from pipelines.runs.fine_tuning_config import FineTuningConfig

_LOGGER = logging.getLogger(__name__)


def other_members(config: FineTuningConfig, first: ModelSource) -> list[ModelSource]:
    """The models of an ensemble beside the first one.

    Args:
        config: names them.
        first: whose tokens all of them read.

    Raises:
        UserError: there is no such model, or it reads other tokens or shorter rows.
    """
    sources = []
    for path in config.members[1:]:
        source = find_model(path, default_lower_case=first.text.do_lower_case)
        if source.text != first.text:
            raise UserError(
                f"{path}: has another vocabulary or casing than {config.members[0]}; models that "
                "answer together must read the same tokens."
            )
        source.config.check_length(config.max_seq_length, at_least=5)
        _tell_of_others(config, first, source)
        sources.append(source)
    return sources


def _tell_of_others(config: FineTuningConfig, first: ModelSource, other: ModelSource) -> None:
    """Warns where a model keeps other options than the first one, whose options all answer with."""
    used, kept = config.kept(first.config), config.kept(other.config)
    differing = sorted(name for name in {*used, *kept} if used.get(name) != kept.get(name))
    if differing:
        _LOGGER.warning(
            "%s was trained with another %s than %s; together they answer with those of the "
            "latter, or those that are given.",
            *(other.checkpoint, ", ".join(differing), first.checkpoint),
        )


def compute_outputs(
    split: str, outputs: RowOutputs, rows: RowEvaluation, models: Sequence[Callable[[], Predicts]]
) -> None:
    """Computes the outputs of all rows, of several models their mean.

    Args:
        split: what the rows are of, for the line of progress.
        outputs: where they are kept.
        rows: one pass over all rows.
        models: make the models, each after the one before it has answered and is let go.
    """
    progress = Progress(f"compute {split}", rows.num_rows * len(models), "rows")
    for make in models:
        predict = make()
        for numbers, values in zip(rows.numbers(), predict(rows), strict=True):
            outputs.add(numbers, values, 1 / len(models))
            progress.advance(len(numbers))
        del predict
    progress.close()
