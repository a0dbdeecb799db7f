"""Which predictions are scored, by which questions."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option


@dataclass(frozen=True, kw_only=True)
class ScoreAnswersConfig:
    """Which predictions are scored, by which questions.

    Raises:
        UserError: a value out of range, or options that do not go together.
    """

    data_file: Path = option(
        REQUIRED,
        "The questions with their answers, in SQuAD's form (1.1, 2.0, KorQuAD 1.0) or TriviaQA's.",
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
        if self.null_odds_file and not self.version_2_with_negative:
            raise UserError(
                "`null_odds_file` is read only where questions may have no answer; add "
                "`version_2_with_negative=True`, or leave it out."
            )
        if self.metric == "korquad" and self.version_2_with_negative:
            raise UserError(
                "`metric=korquad` has no figures for questions without an answer; leave it out, or "
                "`version_2_with_negative`."
            )
