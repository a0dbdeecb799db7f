"""The options of a run for questions, of asking a model, and of scoring predictions."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, REQUIRED, Options, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.options import FineTuningConfig

AUTO = "auto"

THRESHOLD = "null_score_diff_threshold"


@dataclass(frozen=True, kw_only=True)
class RunSquadConfig(FineTuningConfig):
    """The options of a run for questions; the defaults are the original's."""

    IN_A_MODEL: ClassVar = {THRESHOLD: float}

    train_file: Path | None = option(
        None,
        "Questions to train on, in SQuAD's form (1.1, 2.0, KorQuAD 1.0) or TriviaQA's, plain or "
        "packed.",
        resume=FREE,  # its content is compared
    )
    predict_file: Path | None = option(
        None, "Questions to answer and, with do_eval, to evaluate; as train_file.", resume=FREE
    )
    max_seq_length: int = option(
        384,
        "Tokens of a row; longer passages are cut into windows that overlap. Without training the "
        "default means the length that the model was trained with.",
        at_least=5,
    )
    doc_stride: int = option(
        128, "Tokens from the start of a window to the start of the next one.", at_least=1
    )
    max_query_length: int = option(
        64, "The most tokens of a question; longer ones are truncated.", at_least=1
    )
    version_2_with_negative: bool = option(False, "Questions may have no answer, as in SQuAD 2.0.")
    n_best_size: int = option(
        20, "Starts and ends to combine, and answers in the n-best file.", at_least=1, resume=FREE
    )
    max_answer_length: int = option(30, "The most tokens of an answer.", at_least=1, resume=FREE)
    null_score_diff_threshold: str | None = option(
        None,
        "Where there may be no answer, there is none if its score is greater than the best "
        "answer's by more than this. auto: do_eval finds the number with the highest F1 and keeps "
        "it in the model directory. By default the number that the evaluated model's directory "
        "has, else 0.",
        resume=FREE,
    )
    trim_padding: bool = option(
        True,
        "Pad each batch to its longest row only, rounded up to one of at most eight lengths; "
        "padding is then left out of the softmax over a row's positions. Without it "
        "all rows have the maximum and padding competes with the answer, as in the original.",
    )
    metric: str = option(
        "squad",
        "The figures of do_eval: SQuAD's (2.0's where there may be no answer), or KorQuAD's, which "
        "count characters.",
        choices=("squad", "korquad"),
        resume=FREE,
    )
    dev_share: float = option(
        0.0,
        "Without a predict_file, the share of the articles of the training file that are answered "
        "and evaluated instead of trained on.",
        at_least=0,
        at_most=0.9,
    )
    dev_seed: int = option(
        0, "Which articles these are: a function of this number and their titles."
    )
    evidence_dir: Path | None = option(
        None,
        "The documents of TriviaQA's files, with wikipedia/ and web/ in it; by default evidence/ "
        "next to the folder of the file.",
        resume=FREE,
    )
    evidence_words: int = option(
        400, "Words to read from the beginning of each of TriviaQA's documents.", at_least=1
    )
    text_encoding: TextEncoding = nested(TextEncoding)
    verbose_logging: bool = option(
        False, "Accepted for the original's sake; it changes nothing here.", resume=FREE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = {
            "train_file": self.do_train,
            "predict_file": (self.do_eval or self.do_predict) and not self.dev_share,
        }
        for name, is_needed in needed.items():
            if is_needed and getattr(self, name) is None:
                raise UserError(f"`{name}` is missing; name a file in SQuAD's form.")
        if self.dev_share and (self.predict_file or not self.train_file):
            raise UserError(
                f"`dev_share={self.dev_share}` is a share of the training file, in place of "
                "`predict_file`; give `train_file` alone."
            )
        self.threshold()  # which is a number

    def check_together(self) -> None:
        if self.max_seq_length <= self.max_query_length + 3:
            raise UserError(
                f"`max_seq_length={self.max_seq_length}` must be more than "
                f"`max_query_length={self.max_query_length}` and 3, to show some of the passage."
            )
        needed = ("version_2_with_negative", "do_eval")
        missing = [f"`{name}=True`" for name in needed if not getattr(self, name)]
        if self.null_score_diff_threshold == AUTO and missing:
            raise UserError(
                f"`null_score_diff_threshold={AUTO}` finds the number by scoring questions of "
                f"which some have no answer; add {' and '.join(missing)}, or give a number."
            )
        _check_metric(self.metric, self.version_2_with_negative)

    def kept(self, model: BertConfig) -> dict[str, Any]:
        kept = super().kept(model)
        threshold = kept.pop(THRESHOLD, None)
        if threshold and self.null_score_diff_threshold != AUTO:
            kept[THRESHOLD] = str(threshold)
        if self.predict_file or not self.train_file:  # nothing to hold articles out of
            kept = {name: x for name, x in kept.items() if name not in ("dev_share", "dev_seed")}
        return kept

    def threshold(self) -> float | None:
        """The number above which there is no answer; None where it is to be found."""
        given = self.null_score_diff_threshold
        if given == AUTO:
            return None
        try:
            number = 0.0 if given is None else float(given)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise UserError(
                f"`null_score_diff_threshold={given}` is no number; give one, or {AUTO}."
            )
        return number


@dataclass(frozen=True, kw_only=True)
class ScoreAnswersConfig(Options):
    """Which predictions are scored, by which questions."""

    data_file: Path = option(
        REQUIRED,
        "The questions with their answers, in SQuAD's form (1.1, 2.0, KorQuAD 1.0) or TriviaQA's.",
    )
    predictions_file: Path = option(
        REQUIRED, "JSON: an object with the answer to each question by its id; empty for none."
    )
    text_encoding: TextEncoding = nested(TextEncoding)
    null_odds_file: Path | None = option(
        None, "JSON: an object with the odds of no answer; with it come the best thresholds."
    )
    version_2_with_negative: bool = option(False, "Questions may have no answer, as in SQuAD 2.0.")
    null_score_diff_threshold: float = option(
        1.0, "With null_odds_file: questions with greater odds count as unanswered."
    )
    metric: str = option("squad", "SQuAD's figures, or KorQuAD's.", choices=("squad", "korquad"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.null_odds_file and not self.version_2_with_negative:
            raise UserError(
                "`null_odds_file` is read only where questions may have no answer; add "
                "`version_2_with_negative=True`, or leave it out."
            )
        threshold = self.null_score_diff_threshold
        if threshold != ScoreAnswersConfig.null_score_diff_threshold and not self.null_odds_file:
            raise UserError(
                f"`null_score_diff_threshold={threshold}` is held against odds; give "
                "`null_odds_file`, or leave it out."
            )
        _check_metric(self.metric, self.version_2_with_negative)


def _check_metric(metric: str, negative: bool) -> None:
    if metric == "korquad" and negative:
        raise UserError(
            "`metric=korquad` has no figures for questions without an answer; leave it out, or "
            "`version_2_with_negative`."
        )
