"""The files of answers: the original's, and those that people read."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.pictures import write_png
from pipelines.metrics.question_answering import Scores, precision_recall
from pipelines.tables.writing import digits, write_table
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.scores import ScoredAnswers, right_answers

PREDICTIONS, N_BEST, NULL_ODDS = "predictions.json", "nbest_predictions.json", "null_odds.json"


def write_predictions(
    folder: Path,
    answered: Iterable[tuple[Question, Prediction]],
    *,
    version_2_with_negative: bool,
    null_score_diff_threshold: float = 0.0,
) -> list[Path]:
    """Writes what the original writes, byte for byte, one question after the other.

    Returns:
        The files' paths.
    """
    names = [PREDICTIONS, N_BEST, *([NULL_ODDS] if version_2_with_negative else [])]
    paths = [folder / name for name in names]
    with ExitStack() as stack:
        files = [_JsonObject(stack.enter_context(open_whole(path))) for path in paths]
        for question, prediction in answered:
            answer = prediction.best(null_score_diff_threshold).text
            values = (answer, n_best(prediction.candidates), prediction.null_odds)
            for file, value in zip(files, values, strict=False):
                file.add(question.identifier, value)
        for file in files:
            file.end()
    return paths


def n_best(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The candidates as the original's file has them, with the softmax of their scores.

    Example:
        >>> n_best([Candidate("rain", 1.0, 2.0)])
        [{'text': 'rain', 'probability': 1.0, 'start_logit': 1.0, 'end_logit': 2.0}]
    """
    highest = max(candidate.score for candidate in candidates)
    weights = [math.exp(candidate.score - highest) for candidate in candidates]
    total = 0.0
    for weight in weights:  # one after the other: `sum` is more exact in newer versions of Python
        total += weight
    return [
        {
            "text": candidate.text,
            "probability": weight / total,
            "start_logit": candidate.start_logit,
            "end_logit": candidate.end_logit,
        }
        for candidate, weight in zip(candidates, weights, strict=True)
    ]


class _JsonObject:
    """One JSON object written member by member, as `json.dumps(..., indent=4)` writes it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._separator = "{\n"

    def add(self, name: str, value: Any) -> None:
        """Writes a member."""
        member = json_text({name: value}, indent=4)
        self._file.write(self._separator + member.removeprefix("{\n").removesuffix("\n}"))
        self._separator = ",\n"

    def end(self) -> None:
        """Ends the object."""
        self._file.write("{}\n" if self._separator == "{\n" else "\n}\n")


ANSWER_TABLE, CURVE = "answers.tsv", "precision_recall.png"

_COLUMNS = (
    *("f1", "exact_match", "probability", "question", "answer", "right_answers"),
    *("article", "id", "start", "end", "null_odds"),
)
_BETWEEN_ANSWERS = " | "


def write_answer_table(
    path: Path,
    answered: Iterable[tuple[Question, Prediction]],
    threshold: float,
    score: Callable[[str, Sequence[str]], Scores],
) -> Path:
    """Writes all answers as a table, the hardest mistakes first: the surest ones of the worst.

    Returns:
        The path. `answer` has the passage's own characters, those from `start` to `end`; what is
        scored is the original's text, which may have more.
    """
    rows = [_row(question, prediction, threshold, score) for question, prediction in answered]
    rows.sort(key=lambda row: row[0])  # stable
    return write_table(path, _COLUMNS, (cells for _, cells in rows))


def _row(
    question: Question,
    prediction: Prediction,
    threshold: float,
    score: Callable[[str, Sequence[str]], Scores],
) -> tuple[tuple[float, float], list[Any]]:
    """What a row is sorted by, and its cells."""
    best, right = prediction.best(threshold), right_answers(question)
    scores = score(best.text, right)
    rank = prediction.candidates.index(best)
    probability = n_best(prediction.candidates)[rank]["probability"]
    texts = (
        question.text,
        question.passage.text[best.start : best.end],
        _BETWEEN_ANSWERS.join(dict.fromkeys(right)),
        question.passage.article,
        question.identifier,
    )
    figures = f"{100 * scores.f1:.2f}", f"{100 * scores.exact:.0f}", digits(probability)
    odds = "" if prediction.null_odds is None else digits(prediction.null_odds)
    cells = [*figures, *map(_as_unicode, texts), best.start, best.end, odds]
    return (scores.f1, -probability), cells


def _as_unicode(text: str) -> str:
    """A text with a question mark for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def draw_precision_recall(path: Path, scored: ScoredAnswers, threshold: float) -> Path:
    """Draws precision over recall for all thresholds of no answer, and where the threshold is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    has_answer = {name: bool(right) for name, right in scored.right.items()}
    scores = scored.guess_scores()
    for label in Scores._fields:
        values = {name: 1.0 * score._asdict()[label] for name, score in scores.items()}
        curve = precision_recall(values, scored.odds, has_answer)
        shown = f"{label}, average precision {curve.average:.1f} %"
        (line,) = axes.plot(curve.recall, curve.precision, drawstyle="steps-post", label=shown)
        answered = {name: odds for name, odds in scored.odds.items() if odds <= threshold}
        if answered:  # the curve's last point is the one at the threshold
            part = precision_recall(values, answered, has_answer)
            axes.plot(part.recall[-1:], part.precision[-1:], "o", color=line.get_color())
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title(f"answered below {threshold:.4g} (dots)")
    axes.legend(loc="lower left")
    axes.grid(alpha=0.3)
    return write_png(path, figure)
