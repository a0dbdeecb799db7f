"""How a trained model answers questions, as its directory says: windows, answers, the threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from keras_bert_impl.checkpoints.task_settings import served_length
from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.answers import AnswerSettings
from pipelines.tasks.questions.options import THRESHOLD, RunSquadConfig
from pipelines.tasks.questions.rows import WindowSettings

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig

ANSWERS = "answers"
"""The signature that gives the best answers."""


@dataclass(frozen=True)
class ServingSettings:
    """How a served model answers.

    Attributes:
        threshold: where there may be no answer, there is none if the null odds are greater.
    """

    windows: WindowSettings
    answers: AnswerSettings
    threshold: float = 0.0

    @classmethod
    def of(cls, config: "BertConfig", max_seq_length: int | None = None) -> Self:
        """Reads the settings in a model's configuration; the original's defaults where it has none.

        Args:
            max_seq_length: the most tokens of a row; None is as in training.
        """
        known = RunSquadConfig.known(config)
        positions = config.max_position_embeddings
        default = min(WindowSettings.max_seq_length, positions)
        length = served_length(config, max_seq_length, default)
        known.setdefault("max_query_length", _question_tokens(length))
        windows = _from(WindowSettings, {**known, "max_seq_length": length})
        if not windows.max_query_length + 3 < length:
            raise UserError(
                f"`max_seq_length={length}` must be more than the questions' "
                f"{windows.max_query_length} tokens and 3; give another number."
            )
        threshold = known.get(THRESHOLD, 0.0)
        return cls(windows, _from(AnswerSettings, known), threshold)


def _question_tokens(length: int) -> int:
    """The most tokens of a question for a model that does not say it: the original's, if it fits.

    Example:
        >>> _question_tokens(384), _question_tokens(12)
        (64, 4)
    """
    usual = WindowSettings.max_query_length
    return usual if usual + 3 < length else (length - 3) // 2


def _from(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of the values that it knows."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})
