"""Which predictions are scored, by which questions."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.options import REQUIRED, check_options, option


@dataclass(frozen=True, kw_only=True)
class ScoreAnswersConfig:
    """Which predictions are scored, by which questions.

    Raises:
        UserError: a value out of range.
    """

    data_file: Path = option(
        REQUIRED, "The questions with their answers, in SQuAD's form (1.1, 2.0, KorQuAD 1.0)."
    )
    predictions_file: Path = option(
        REQUIRED, "JSON: an object with the answer to each question by its id; empty for none."
    )
    null_odds_file: Path | None = option(
        None, "JSON: an object with the odds of no answer; with it come the best thresholds."
    )
    version_2_with_negative: bool = option(False, "Questions may have no answer, as in SQuAD 2.0.")
    null_score_diff_threshold: float = option(
        1.0, "With null_odds_file: questions with greater odds count as unanswered."
    )
    metric: str = option("squad", "SQuAD's figures, or KorQuAD's.", choices=("squad", "korquad"))

    def __post_init__(self) -> None:
        check_options(self)
