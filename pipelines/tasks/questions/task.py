"""The task of a run for questions: files in SQuAD's form → rows → spans → the original's files."""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from keras_bert_impl.checkpoints.task_settings import without_task
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.learning_curve import CurveStyle
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.start import starting_point
from pipelines.fine_tuning.task import Answered, Facts, Head, TaskDefaults
from pipelines.metrics.guessing import Guessing
from pipelines.metrics.question_answering import squad_v2_question, trivia_scores
from pipelines.records.rows import Rows
from pipelines.tables.lines import read_json
from pipelines.tasks.questions.answerer import LOGITS, QuestionForm, ServingSettings, settings_of
from pipelines.tasks.questions.answers import (
    SURELY_NO_ANSWER,
    AnswerSettings,
    Candidate,
    Prediction,
    dense_logits,
    predict,
)
from pipelines.tasks.questions.files import (
    WANTED,
    Question,
    is_trivia,
    read_questions,
    trivia_right_answers,
)
from pipelines.tasks.questions.options import THRESHOLD, RunSquadConfig
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from pipelines.tasks.questions.scores import (
    ANSWER_TABLE,
    METRICS,
    TRIVIA_PREDICTIONS,
    ScoredAnswers,
    best_of_documents,
    write_answer_table,
    write_object,
    write_predictions,
)

if TYPE_CHECKING:
    import numpy as np

    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.forms import KnownModel
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer


_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class QuestionTask(TaskDefaults):
    """Questions answered by a span of a passage; see `pipelines.fine_tuning.task.Task`.

    By `text`, the model's vocabulary and casing, spans become the original's text; only a served
    model does without. Questions with greater null odds than the threshold have no answer; None is
    the number with the highest F1, which `calibrated` takes from the scores.
    """

    ARCHITECTURE, MODEL = "BertForQuestionAnswering", "BertSpanLabeler"
    compared_figures: ClassVar = ("f1", "exact_match", "exact")
    # Training knows of windows only, not whether a question's answer is right.
    curve_style: ClassVar = CurveStyle(compared_figures, full_score=100.0, trained=())

    text: TextSettings | None = None
    config: RunSquadConfig = field(default_factory=partial(RunSquadConfig, output_dir=Path()))
    threshold: float | None = 0.0
    name: str = "squad"
    train_split: str = "train"
    evaluation_splits: Sequence[str] = ("predict",)
    test_splits: Sequence[str] = ("predict",)

    @classmethod
    def of_model(cls, model: "BertConfig") -> "QuestionTask":
        """The task of a trained model, whose served form reads the settings there itself."""
        del model
        return cls()

    @property
    def settings(self) -> Mapping[str, Any]:
        names = "doc_stride", "max_query_length", "version_2_with_negative", "evidence_words"
        of_dev = ("dev_share", "dev_seed") if self.config.dev_share else ()
        return {name: getattr(self.config, name) for name in (*names, *of_dev)}

    @property
    def answer_options(self) -> Mapping[str, Any]:
        options = {
            "n_best_size": self.config.n_best_size,
            "max_answer_length": self.config.max_answer_length,
        }
        return options if self.threshold is None else {**options, THRESHOLD: self.threshold}

    def calibrated(self, scores: Mapping[str, float]) -> "QuestionTask":
        """The task with the threshold of the highest F1, where it was to be found."""
        if self.threshold is not None:
            return self
        _LOGGER.info("%s = %s (highest F1)", THRESHOLD, scores[THRESHOLD])
        return replace(self, threshold=scores[THRESHOLD])

    def files(self, split: str) -> Sequence[Path]:
        training = split == self.train_split or self.config.dev_share
        path = self.config.train_file if training else self.config.predict_file
        if path is None:
            raise UserError(f"`{split}_file` is missing; name a file in SQuAD's form.")
        return [path]

    def examples(self, split: str) -> Iterable[Question]:
        """The questions of a split; for training those whose answer is where it should be."""
        training = split == self.train_split
        found = self._read(split, training=training)
        if not self.config.dev_share:
            return found
        dev = self._dev_articles
        return (one for one in found if (one.passage.article in dev) != training)

    def _read(self, split: str, *, training: bool) -> Iterable[Question]:
        config = self.config
        return read_questions(
            *self.files(split),
            version_2_with_negative=config.version_2_with_negative,
            training=training,
            evidence_dir=config.evidence_dir,
            evidence_words=config.evidence_words,
            encoding=config.text_encoding,
        )

    @cached_property
    def _dev_articles(self) -> frozenset[str]:
        """The titles of the articles that are held out, one at least and not all.

        A function of the seed and all titles.
        """
        questions = self._read(self.train_split, training=False)
        titles = {one.passage.article for one in questions}
        if len(titles) < 2:
            raise UserError(
                f"{self.config.train_file}: has one article, of which `dev_share` cannot hold any "
                "out; name a `predict_file`."
            )
        seed, count = self.config.dev_seed, round(self.config.dev_share * len(titles))
        order = sorted(titles, key=lambda title: sha256(f"{seed} {title}".encode()).digest())
        return frozenset(order[: min(max(1, count), len(titles) - 1)])

    @cached_property
    def _trivia(self) -> Any:
        """The content of the file that is asked, where it is in TriviaQA's form, else None."""
        config = self.config
        path = config.train_file if config.dev_share else config.predict_file
        content = read_json(path, WANTED, config.text_encoding) if path else None
        return content if is_trivia(content) else None

    def facts(self, example: Question) -> Facts:
        is_labelled = example.is_impossible or example.answers
        if not (self.config.version_2_with_negative and is_labelled):
            return Facts()
        return Facts(["no answer" if example.is_impossible else "an answer"])

    def texts(self, example: Question) -> list[str]:
        return [example.text, example.passage.text]

    def rows(
        self, examples: Sequence[Question], tokenizer: "LineTokenizer", max_seq_length: int
    ) -> Rows:
        return question_rows(examples, tokenizer, self._windows(max_seq_length), training=False)

    def training_rows(self, examples: Any, tokenizer: Any, max_seq_length: int) -> Rows:
        windows = self._windows(max_seq_length)
        return question_rows(examples, tokenizer, windows, training=True, answered=False)

    def _windows(self, max_seq_length: int) -> WindowSettings:
        return settings_of(WindowSettings, vars(self.config) | {"max_seq_length": max_seq_length})

    def configure(self, config: "BertConfig") -> "BertConfig":
        return without_task(config)

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        from keras_bert_impl.models.token_models import BertSpanLabeler
        from keras_bert_impl.training.objectives import SpanObjective

        return Head(
            BertSpanLabeler(config, dtype=dtype),
            SpanObjective(padding_competes=not self.config.trim_padding),
            labels=("start_positions", "end_positions"),
            token_outputs=LOGITS,
        )

    def answers(
        self, examples: Sequence[Question], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> Sequence[Prediction]:
        if self.text is None:
            raise ValueError("give `text`, the model's vocabulary and casing")
        start, end = (dense_logits(rows, outputs[name]) for name in LOGITS)
        settings = settings_of(AnswerSettings, vars(self.config))
        return predict(examples, rows, start, end, self.text, settings)

    def score(self, answered: Answered[Question, Prediction]) -> Mapping[str, float]:
        """The official figures, in percent, with the bounds of their intervals over articles.

        Where there may be no answer, they are those at the threshold (where it is to be found, at
        the one with the highest F1), and beside them those of the best thresholds.
        """
        if self._trivia:
            return trivia_scores(*self._trivia_answers(answered))
        scored = ScoredAnswers.of(answered)
        if self.config.version_2_with_negative:
            return scored.figures_v2(self.threshold)
        return scored.figures(self.config.metric)

    def _trivia_answers(
        self, answered: Answered[Question, Prediction]
    ) -> tuple[dict[str, str], dict[str, Mapping[str, Any]]]:
        """The best answers and the right ones, by what TriviaQA's figures count."""
        best = best_of_documents(self._trivia, answered)
        right = trivia_right_answers(self.files("predict")[0], self._trivia)
        return best, {k: right[k] for k in best} if self.config.dev_share else right

    def drawn_scores(
        self, answered: Sequence[tuple[Any, Any]], draws: "np.random.Generator"
    ) -> Iterator[Mapping[str, Any]]:
        """See `TaskDefaults.drawn_scores`; a question that is drawn twice counts as two."""
        if self._trivia:  # whole questions are drawn, with all their documents
            best, right = self._trivia_answers(answered)
            keys = [*right]
            while True:
                drawn = [keys[k] for k in draws.integers(len(keys), size=len(keys))]
                found = {f"{n}": best[key] for n, key in enumerate(drawn) if key in best}
                yield trivia_scores(found, {f"{n}": right[key] for n, key in enumerate(drawn)})
        while True:
            pairs = [answered[k] for k in draws.integers(len(answered), size=len(answered))]
            yield self.score([(replace(x, identifier=f"{n}"), y) for n, (x, y) in enumerate(pairs)])

    def guessing(self, split: str) -> Guessing | None:
        if not self.config.version_2_with_negative:
            return None
        nothing = Prediction([Candidate("", 0.0, 0.0)], SURELY_NO_ANSWER)
        return Guessing("no question answered", [(one, nothing) for one in self.examples(split)])

    def illustrate(
        self, folder: Path, split: str, answered: Answered[Question, Prediction]
    ) -> Sequence[Path]:
        del split  # there is one
        if self._trivia:
            return []
        negative = self.config.version_2_with_negative
        threshold = self.threshold or 0.0 if negative else math.inf
        one = squad_v2_question if negative else METRICS[self.config.metric]
        return [write_answer_table(folder / ANSWER_TABLE, answered, threshold, one)]

    def write(
        self, folder: Path, split: str, answered: Answered[Question, Prediction]
    ) -> Sequence[Path]:
        """Writes the original's files: predictions, the n best, the null odds; and TriviaQA's."""
        del split  # there is one
        files = write_predictions(
            folder,
            answered,
            version_2_with_negative=self.config.version_2_with_negative,
            null_score_diff_threshold=self.threshold or 0.0,
        )
        if self._trivia:
            best = best_of_documents(self._trivia, answered)
            files.append(write_object(folder / TRIVIA_PREDICTIONS, best))
        return files

    def forms(self, model: "KnownModel", max_seq_length: int | None) -> list[QuestionForm]:
        settings = ServingSettings.of(model.config, max_seq_length)
        return [QuestionForm(model, settings, best=best) for best in (False, True)]

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        from pipelines.tasks.questions.served import ServedQuestions

        return ServedQuestions(opened, ServingSettings.of(opened.model.config, max_seq_length))


def task_of(config: RunSquadConfig) -> QuestionTask:
    """The task that a configuration describes, for the model that the run starts from."""
    text = starting_point(config, RunDirectory(config.output_dir)).text
    return QuestionTask(text, config, config.threshold())
