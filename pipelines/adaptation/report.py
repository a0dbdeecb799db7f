"""What an adaptation brought: figures of held-out text and of a task, before and after."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_bert_impl.tokenization.vocabulary import CONTINUATION, UNK, Vocabulary
from keras_bert_impl.training.config import LOW_IS_GOOD
from keras_bert_impl.training.learning_curve import read_guesses
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.adaptation.words import Coverage
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.many_runs.spread import (
    Spread,
    differs_significantly,
    markdown_table,
    welch_interval,
    write_report,
)
from pipelines.metrics.guessing import count_answers
from pipelines.records.check import Expected
from pipelines.runs.pretraining_config import RunPretrainingConfig

ORIGINAL, ADAPTED = "original", "adapted"
"""The two models that are compared."""

NATS = "nats_per_character"
_TITLES = {ORIGINAL: "as it came", ADAPTED: "adapted"}
_ROWS = (
    ("masked token, accuracy", "masked_lm_accuracy", "{:.1%}"),
    ("masked token, loss in nats", "masked_lm_loss", "{:.3f}"),
    ("masked word, nats a character", NATS, "{:.3f}"),
    ("next sentence, accuracy", "next_sentence_accuracy", "{:.1%}"),
)
_WORTH_LEARNING = 0.95


@dataclass(frozen=True)
class TextFigures:
    """How a model does on the held-out text, what guessing reaches, and how the text is cut."""

    figures: Mapping[str, float]
    guesses: Mapping[str, float]
    coverage: Coverage


def text_figures(
    folder: Path, config: RunPretrainingConfig, vocabulary: Vocabulary, cut: Coverage
) -> TextFigures:
    """Reads the figures of a run and adds what can be compared between vocabularies."""
    run = RunDirectory(folder)
    figures = run.read_eval_results()
    guesses = {name: guess.value for name, guess in read_guesses(run).items()}
    held_out = PretrainingEvaluation(
        list(config.eval_input_file),
        config.eval_batch_size,
        Expected(config.max_seq_length, config.max_predictions_per_seq),
        max_batches=config.max_eval_steps,
    )
    counts = count_answers(held_out.batches(), len(vocabulary)).tokens
    masked = {token: int(n) for token, n in zip(vocabulary.tokens, counts, strict=True) if n}
    for found in (figures, guesses):
        if "masked_lm_loss" in found:
            found[NATS] = nats_per_character(found["masked_lm_loss"], masked, cut)
    return TextFigures(figures, guesses, cut)


def nats_per_character(loss: float, masked: Mapping[str, int], cut: Coverage) -> float:
    """What it costs to tell the masked words from their context, by their characters.

    The loss of all masked tokens, divided by the characters that they stand for. As whole words are
    masked, another vocabulary cuts the same words into other tokens, but they have the same
    characters. An [UNK] is told by its loss, but not what it stands for: each of its characters is
    counted with the logarithm of the number of different characters, as if they were spelled.

    `loss` is the mean of masked tokens in nats; `masked` says how often each token was masked.

    Example:
        >>> cut = Coverage(9, 2.0, 0.1, unknown_length=4.0, alphabet=10)
        >>> nats_per_character(1.5, {"ab": 1, "##cd": 1}, cut)
        0.75
        >>> round(nats_per_character(0.0, {"[UNK]": 1}, cut), 3)  # four of ten characters, spelled
        2.303
    """
    unknown = masked.get(UNK, 0) * cut.unknown_length
    known = sum(len(one.removeprefix(CONTINUATION)) * n for one, n in masked.items() if one != UNK)
    nats = loss * sum(masked.values()) + unknown * math.log(max(cut.alphabet, 1))
    return nats / max(known + unknown, 1)


@dataclass(frozen=True)
class TaskFigure:
    """A figure of the task, of several seeds, before and after.

    `interval` is the 95 % interval of the `difference` of the means; `verdict` is 1 of a gain and
    -1 of a loss that is more than chance, else 0.
    """

    name: str
    original: Sequence[float]
    adapted: Sequence[float]
    difference: float
    interval: tuple[float, float]
    verdict: int

    @classmethod
    def of(cls, name: str, original: Sequence[float], adapted: Sequence[float]) -> "TaskFigure":
        """Compares the scores of both models."""
        difference = statistics.fmean(adapted) - statistics.fmean(original)
        sign = 1 if (difference > 0) != name.endswith(LOW_IS_GOOD) else -1
        verdict = sign if differs_significantly(adapted, original) else 0
        return cls(name, original, adapted, difference, welch_interval(adapted, original), verdict)


def task_figures(
    original: Sequence[Mapping[str, float]], adapted: Sequence[Mapping[str, float]]
) -> list[TaskFigure]:
    """The figures that every run of the task has, but the loss."""
    runs = [*original, *adapted]
    return [
        TaskFigure.of(name, *([one[name] for one in group] for group in (original, adapted)))
        for name in (runs[0] if runs else ())
        if name.startswith("eval_")
        and not name.endswith("loss")
        and all(name in run for run in runs)
    ]


@dataclass(frozen=True)
class Adaptation:
    """What there is to report.

    `steps` are those taken in training, and of them the best. `text` are the figures of both
    models.
    """

    model: str
    missing_heads: Sequence[str]
    new_tokens: int
    steps: tuple[int, int]
    text: Mapping[str, TextFigures]
    task: Sequence[TaskFigure] = ()
    commands: Sequence[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        steps = dict(zip(("taken", "best"), self.steps, strict=True))
        return {**dataclasses.asdict(self), "steps": steps}

    def lines(self) -> list[str]:
        """The tables and what they mean, for the terminal and for Markdown."""
        taken, best = self.steps
        before, after = (self.text[which].figures[NATS] for which in (ORIGINAL, ADAPTED))
        new_heads = (
            f"The model came without a head for {' and '.join(self.missing_heads)}: one was made, "
            "whose weights are random before training, so that it is no better than guessing there."
        )
        return [
            f"{self.model}: {self.new_tokens:,} tokens added, {taken:,} steps (the model is that "
            f"of step {best:,}). To tell a masked word costs {after:.3f} nats a character in place "
            f"of {before:.3f} ({after / before - 1:+.1%}).",
            *self._hardly_learned(),
            "",
            *self._text_table(),
            "",
            "In brackets: what guessing by frequency reaches. Accuracy and loss of masked tokens "
            "are of each model's own tokens; nats a character can be compared between "
            "vocabularies.",
            *([new_heads] if self.missing_heads else []),
            *self._task_lines(),
        ]

    def _hardly_learned(self) -> list[str]:
        """A warning where the adapted model knows little more than how frequent its tokens are."""
        adapted = self.text[ADAPTED]
        guess, nats = adapted.guesses.get(NATS), adapted.figures[NATS]
        if guess is None or nats < _WORTH_LEARNING * guess:
            return []
        return [
            f"Warning: the adapted model has learned little more than how frequent tokens are: "
            f"{nats:.3f} nats a character, where guessing by frequency reaches {guess:.3f}. Take "
            "more steps, more text or another learning rate, or add fewer tokens."
        ]

    def _text_table(self) -> list[str]:
        models = list(self.text.values())
        rows = [
            [title, *(_beside_guess(one, name, form) for one in models)]
            for title, name, form in _ROWS
        ]
        cuts = [one.coverage for one in models]
        rows.append(["tokens a word", *(f"{one.tokens_per_word:.2f}" for one in cuts)])
        rows.append(["words that are [UNK]", *(f"{one.unknown_share:.2%}" for one in cuts)])
        return markdown_table(["held-out text", *(_TITLES[name] for name in self.text)], rows)

    def _task_lines(self) -> list[str]:
        if not self.task:
            return []
        header = ["task", "as it came", "adapted", "difference", "95 % interval"]
        rows = [
            [
                one.name,
                f"{Spread.of(one.original)}",
                f"{Spread.of(one.adapted)}",
                f"{one.difference:+.4f}",
                "{:+.4f} to {:+.4f}".format(*one.interval),
            ]
            for one in self.task
        ]
        said = f"{len(self.task[0].original)} seeds each; ± is one run's σ."
        return ["", *markdown_table(header, rows), "", said, *self._verdicts()]

    def _verdicts(self) -> list[str]:
        """What the intervals say: of a loss, that the model as it came is the better one."""
        better, worse = (
            ", ".join(one.name for one in self.task if one.verdict == sign) for sign in (1, -1)
        )
        told = []
        if better:
            told.append(f"The adapted model is better by more than chance: {better}.")
        if worse:
            told.append(
                f"Warning: the adapted model is worse by more than chance: {worse}. Keep the model "
                "as it came for this task, or adapt it with more text, more steps or a lower "
                "learning rate."
            )
        return told or ["No difference is more than chance."]

    def write(self, folder: Path) -> list[Path]:
        """Writes `report.md`, with the commands, and `adaptation.json`."""
        lines = [*self.lines(), "", "```sh", *self.commands, "```"]
        return write_report(folder / "report.md", lines, folder / "adaptation.json", self.as_json())


def _beside_guess(one: TextFigures, name: str, form: str) -> str:
    if name not in one.figures:
        return ""
    guess = f" ({form.format(one.guesses[name])})" if name in one.guesses else ""
    return form.format(one.figures[name]) + guess
