"""What an adaptation brought: figures of held-out text and of a task, before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.training.config import LOW_IS_GOOD
from pipelines.studies.adapt_words import Cut
from pipelines.studies.scores import Spread, markdown_table, number, welch_interval, write_report

_LOSS, _ACCURACY, _NEXT = "masked_lm_loss", "masked_lm_accuracy", "next_sentence_accuracy"
_WORTH_LEARNING = 0.95


class TaskFigure(NamedTuple):
    """A figure of the task, of several seeds, before and after, with Welch's interval (95 %)."""

    name: str
    original: Sequence[float]
    adapted: Sequence[float]
    interval: tuple[float, float]

    @property
    def gain(self) -> int:
        """1 of a gain and -1 of a loss that is more than chance, else 0."""
        sign = -1 if self.name.endswith(LOW_IS_GOOD) else 1
        low, high = self.interval
        return sign * ((low > 0) - (high < 0))


def task_figures(
    original: Sequence[Mapping[str, Any]], adapted: Sequence[Mapping[str, Any]]
) -> list[TaskFigure]:
    """Compares the figures that every run of the task has, but the loss."""
    found = list[TaskFigure]()
    for name in original[0]:
        is_figure = name.startswith("eval_") and not name.endswith("loss")
        if is_figure and all(name in run for run in (*original, *adapted)):
            before, after = ([number(run[name] or 0.0) for run in x] for x in (original, adapted))
            found.append(TaskFigure(name, before, after, welch_interval(after, before)))
    return found


@dataclass(frozen=True)
class Adaptation:
    """What there is to report; figures of text are in each model's own tokens."""

    model: str
    missing_heads: Sequence[str]
    new_tokens: int
    steps: tuple[int, int]  # those taken in training, and of them the best
    original: Mapping[str, float]  # figures of the model as it came; none without a head
    adapted: Mapping[str, float]
    guesses: Mapping[str, float]  # what guessing by the adapted model's tokens reaches
    cut_before: Cut
    cut_after: Cut
    task: Sequence[TaskFigure] = ()
    commands: Sequence[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "model": self.model,
            "missing_heads": self.missing_heads,
            "new_tokens": self.new_tokens,
            "steps": dict(zip(("taken", "best"), self.steps, strict=True)),
            "nats_per_character": self._nats(),
            "guessing": self.guesses,
            "original": {**self.original, **self.cut_before._asdict()},
            "adapted": {**self.adapted, **self.cut_after._asdict()},
            "task": [one._asdict() for one in self.task],
            "commands": self.commands,
        }

    def _nats(self) -> dict[str, float]:
        """What a masked word costs by guessing and by both models, in nats a character."""
        known = {
            "guessing": (self.guesses, self.cut_after),
            "original": (self.original, self.cut_before),
            "adapted": (self.adapted, self.cut_after),
        }
        return {
            name: cut.nats_per_character(figures[_LOSS])
            for name, (figures, cut) in known.items()
            if _LOSS in figures
        }

    def lines(self) -> list[str]:
        """What training did, the tables and what they mean, for the terminal and for Markdown."""
        nats, (taken, best) = self._nats(), self.steps
        guess, after = nats["guessing"], nats["adapted"]
        change = f"{after / guess - 1:+.1%} against guessing by frequency"
        if "original" not in nats:
            change += ", with which its new head began"
        elif nats["original"] < guess:
            change = f"{after / nats['original'] - 1:+.1%} against the model as it came, {change}"
        else:
            change += ", which the model as it came does not reach"
        hardly_learned = (
            f"Warning: the adapted model has learned little more than how frequent tokens are: "
            f"{after:.3f} nats a character, where guessing by frequency reaches {guess:.3f}. Take "
            "more steps, more text or another learning rate, or add fewer tokens."
        )
        new_heads = (
            f"The model came without a head for {' and '.join(self.missing_heads)}: one was made, "
            "so that there is no figure of the model as it came."
        )
        return [
            f"{self.model}: after {taken:,} steps (the model is that of step {best:,}) a masked "
            f"word costs {after:.3f} nats a character, {change}; {self.new_tokens:,} tokens "
            "were added.",
            *([hardly_learned] if after >= _WORTH_LEARNING * guess else []),
            "",
            *self._text_table(nats),
            "",
            "Guessing is by the frequencies of the adapted model's tokens in the text. Accuracy is "
            "of each model's own tokens; nats a character can be compared between vocabularies.",
            *([new_heads] if self.missing_heads else []),
            *self._task_lines(),
        ]

    def _text_table(self, nats: Mapping[str, float]) -> list[str]:
        columns = {"guessing": self.guesses, "original": self.original, "adapted": self.adapted}
        costs = (f"{nats[name]:.3f}" if name in nats else "" for name in columns)
        rows = [["masked word, nats a character", *costs]]
        for title, name in ("masked token", _ACCURACY), ("next sentence", _NEXT):
            shares = (f"{one[name]:.1%}" if name in one else "" for one in columns.values())
            rows.append([f"{title}, accuracy", *shares])
        cuts = (self.cut_before, self.cut_after)
        rows.append(["tokens a word", "", *(f"{one.tokens_per_word:.2f}" for one in cuts)])
        rows.append(["words that are [UNK]", "", *(f"{one.unknown_share:.2%}" for one in cuts)])
        return markdown_table(["held-out text", "guessing", "as it came", "adapted"], rows)

    def _task_lines(self) -> list[str]:
        if not self.task:
            return []
        header = ["task", "as it came", "adapted", "95 % interval of the difference"]
        rows = [
            [one.name, *map(str, map(Spread.of, one[1:3])), "{:+.4f} to {:+.4f}".format(*one[3])]
            for one in self.task
        ]
        better, worse = (
            ", ".join(one.name for one in self.task if one.gain == sign) for sign in (1, -1)
        )
        told = [f"The adapted model is better by more than chance: {better}."] if better else []
        if worse:
            told.append(
                f"Warning: the adapted model is worse by more than chance: {worse}. Keep the model "
                "as it came for this task, or adapt it with more text, more steps or a lower "
                "learning rate."
            )
        said = f"{len(self.task[0].original)} seeds each; ± is one run's σ."
        verdict = told or ["No difference is more than chance."]
        return ["", *markdown_table(header, rows), "", said, *verdict]

    def write(self, folder: Path) -> list[Path]:
        """Writes `report.md`, with the commands, and `adaptation.json`."""
        lines = [*self.lines(), "", "```sh", *self.commands, "```"]
        return write_report(folder / "report.md", lines, folder / "adaptation.json", self.as_json())
