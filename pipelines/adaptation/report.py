"""What an adaptation brought: figures of held-out text and of a task, before and after."""

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, UNK, Vocabulary
from keras_bert_impl.training.config import LOW_IS_GOOD
from keras_bert_impl.training.guesses import read_guesses
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.adaptation.steps import ADAPTED, GROWN, ORIGINAL
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.many_runs.spread import Spread, markdown_table, welch_interval, without_nan
from pipelines.metrics.constant_answer import CONSTANT
from pipelines.metrics.frequency_baseline import count_answers
from pipelines.runs.pretraining_config import RunPretrainingConfig

NATS = "nats_per_character"
_TITLES = {ORIGINAL: "as it came", GROWN: "with new tokens", ADAPTED: "adapted"}


@dataclass(frozen=True)
class Coverage:
    """How a vocabulary cuts the held-out text.

    Attributes:
        words: how many there are.
        tokens_per_word: into how many tokens a word is cut that is not [UNK].
        unknown_share: the share of words that are [UNK].
        unknown_length: the mean number of characters of those.
        alphabet: how many different characters the whole text has.
    """

    words: int
    tokens_per_word: float
    unknown_share: float
    unknown_length: float
    alphabet: int


@dataclass(frozen=True)
class TextFigures:
    """How a model does on the held-out text.

    Attributes:
        figures: of `eval_results.txt`, and `nats_per_character`.
        guesses: what guessing reaches, by the figures' names.
        coverage: how its vocabulary cuts the text.
    """

    figures: Mapping[str, float]
    guesses: Mapping[str, float]
    coverage: Coverage


def text_figures(
    folder: Path, config: RunPretrainingConfig, vocabulary: Vocabulary, cut: Coverage
) -> TextFigures:
    """Reads the figures of a run and adds what can be compared between vocabularies.

    Args:
        folder: the run's.
        config: the run's.
        vocabulary: of its model.
        cut: how that cuts the held-out text.

    Raises:
        UserError: its held-out shards are gone.
    """
    run = RunDirectory(folder)
    figures = run.read_eval_results()
    guesses = {name: guess.value for name, guess in read_guesses(run).items()}
    counts = count_answers(
        PretrainingEvaluation(
            list(config.eval_input_file),
            config.eval_batch_size,
            config.max_seq_length,
            config.max_predictions_per_seq,
            max_batches=config.max_eval_steps,
        ).batches(),
        len(vocabulary),
    )
    masked = {token: int(n) for token, n in zip(vocabulary.tokens, counts.tokens, strict=True) if n}
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

    Args:
        loss: nats of a masked token, the mean.
        masked: how often each token was masked.
        cut: how long words are that are [UNK], and how many characters there are.

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
    """A figure of the task, of several seeds.

    Attributes:
        name: as in `eval_results.txt`.
        original: of the model as it came.
        adapted: of the adapted one.
    """

    name: str
    original: Sequence[float]
    adapted: Sequence[float]

    @property
    def difference(self) -> float:
        """The mean after minus the mean before."""
        return statistics.fmean(self.adapted) - statistics.fmean(self.original)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference; None of a single seed."""
        if len(self.original) < 2:
            return None
        return welch_interval(self.adapted, self.original)

    @property
    def verdict(self) -> int:
        """1 of a gain and -1 of a loss that the interval says is more than chance, else 0."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return 0
        return 1 if (self.difference > 0) != self.name.endswith(LOW_IS_GOOD) else -1


def task_figures(
    original: Sequence[Mapping[str, float]],
    adapted: Sequence[Mapping[str, float]],
    wanted: Sequence[str],
) -> list[TaskFigure]:
    """The figures that are compared.

    Args:
        original: of each seed's fine-tuning of the model as it came.
        adapted: of the adapted one.
        wanted: their names; () takes all but the loss.

    Raises:
        UserError: there is no such figure.
    """
    if not original:
        return []
    runs = [*original, *adapted]
    there = [
        name
        for name in original[0]
        if name.startswith("eval_")
        and not name.startswith(_CONSTANT)
        # A figure that not every run has cannot be compared.
        and all(name in run for run in runs)
    ]
    missing = [name for name in wanted if name not in there]
    if missing:
        raise UserError(f"`task_figures={missing[0]}` is none; choose of {', '.join(there)}.")
    names = wanted or [name for name in there if not name.endswith("loss")]
    return [
        TaskFigure(name, [one[name] for one in original], [one[name] for one in adapted])
        for name in names
    ]


def constant_runs(runs: Sequence[Mapping[str, float]]) -> int:
    """How many fine-tuned models gave one answer to everything.

    Args:
        runs: the figures of each seed's `eval_results.txt`.

    Example:
        >>> constant_runs([{"eval_f1": 0.0, "eval_constant_f1": 0.0}, {"eval_f1": 31.5}])
        1
    """
    return sum(any(name.startswith(_CONSTANT) for name in run) for run in runs)


_CONSTANT = f"eval_{CONSTANT}"


@dataclass(frozen=True)
class Adaptation:
    """What there is to report.

    Attributes:
        model: the model as the user named it.
        missing_heads: heads that it came without.
        new_tokens: how many were added.
        steps: taken in training, and of them the best.
        text: the figures of the three models; without growth there is no second one.
        task: the task's.
        constant: how many fine-tunings of the original and of the adapted model gave one answer to
            everything.
        commands: what was run.
    """

    model: str
    missing_heads: Sequence[str]
    new_tokens: int
    steps: tuple[int, int]
    text: Mapping[str, TextFigures]
    task: Sequence[TaskFigure] = ()
    constant: tuple[int, int] = (0, 0)
    commands: Sequence[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values; NaN is null."""
        values = dataclasses.asdict(self)
        values["steps"] = dict(zip(("taken", "best"), self.steps, strict=True))
        values["constant"] = dict(zip((ORIGINAL, ADAPTED), self.constant, strict=True))
        values["task"] = [
            {**vars(one), "difference": one.difference, "interval": one.interval}
            for one in self.task
        ]
        return without_nan(values)

    def lines(self) -> list[str]:
        """The tables and what they mean, for the terminal and for Markdown."""
        taken, best = self.steps
        before, after = (self.text[which].figures[NATS] for which in (ORIGINAL, ADAPTED))
        return [
            f"{self.model}: {self.new_tokens:,} tokens added, {taken:,} steps (the model is that "
            f"of step {best:,}). To tell a masked word costs {after:.3f} nats a character in place "
            f"of {before:.3f} ({after / before - 1:+.1%}).",
            *self._hardly_learned(),
            "",
            *markdown_table(*self._text_table()),
            "",
            *_NOTES,
            *(
                [_OF_NEW_HEADS.format(heads=" and ".join(self.missing_heads))]
                * bool(self.missing_heads)
            ),
            *self._task_lines(),
        ]

    def _hardly_learned(self) -> list[str]:
        """A warning where the adapted model knows little more than how frequent its tokens are.

        What the held-out text's own frequencies reach stands beside the model of the same
        vocabulary before its training: the frequencies of a short training text reach less.
        """
        same_tokens = self.text.get(GROWN, self.text[ORIGINAL])
        after = self.text[ADAPTED].figures[NATS]
        guesses = [
            one.guesses[NATS] for one in (same_tokens, self.text[ADAPTED]) if NATS in one.guesses
        ]
        if not guesses or after < _WORTH_LEARNING * min(guesses):
            return []
        return [_HARDLY_LEARNED.format(after=after, guess=min(guesses))]

    def _text_table(self) -> tuple[list[str], list[list[str]]]:
        models = list(self.text.values())
        header = ["held-out text", *(_TITLES[name] for name in self.text)]
        rows = [
            [title, *(_beside_guess(one, name, form) for one in models)]
            for title, name, form in _ROWS
        ]
        cuts = [one.coverage for one in models]
        return header, [
            *rows,
            ["tokens a word", *(f"{one.tokens_per_word:.2f}" for one in cuts)],
            ["words that are [UNK]", *(f"{one.unknown_share:.2%}" for one in cuts)],
        ]

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
                "one seed" if one.interval is None else "{:+.4f} to {:+.4f}".format(*one.interval),
            ]
            for one in self.task
        ]
        seeds = len(self.task[0].original)
        said = f"{seeds} seeds each; ± is one run's σ." if seeds > 1 else "One seed: no σ is known."
        told = [*self._verdicts(), *self._nothing_learned(seeds)]
        return ["", *markdown_table(header, rows), "", said, *told]

    def _verdicts(self) -> list[str]:
        """What the intervals say: of a loss, that the model as it came is the better one."""
        if self.task[0].interval is None:
            return []
        better, worse = (
            ", ".join(one.name for one in self.task if one.verdict == sign) for sign in (1, -1)
        )
        return [
            *([_BETTER.format(names=better)] if better else []),
            *([_WORSE.format(names=worse)] if worse else []),
            *([] if better or worse else [_NOT_APART]),
        ]

    def _nothing_learned(self, seeds: int) -> list[str]:
        """A warning where fine-tuned models gave one answer to everything, and what to try."""
        before, after = self.constant
        if not before and not after:
            return []
        told = f"{before} of the model as it came and {after} of the adapted one"
        return [_CONSTANT_ANSWERS.format(told=told, seeds=seeds)]

    def write(self, folder: Path) -> list[Path]:
        """Writes `report.md`, with the commands, and `adaptation.json`.

        Raises:
            UserError: the folder cannot be written.
        """
        report, values = folder / "report.md", folder / "adaptation.json"
        commands = ["", "```sh", *self.commands, "```"]
        with open_whole(report) as file:
            file.writelines(f"{line}\n" for line in [*self.lines(), *commands])
        with open_whole(values) as file:
            file.write(json.dumps(self.as_json(), indent=1) + "\n")
        return [report, values]


_ROWS = (
    ("masked token, accuracy", "masked_lm_accuracy", "{:.1%}"),
    ("masked token, loss in nats", "masked_lm_loss", "{:.3f}"),
    ("masked word, nats a character", NATS, "{:.3f}"),
    ("next sentence, accuracy", "next_sentence_accuracy", "{:.1%}"),
)
_WORTH_LEARNING = 0.95
_HARDLY_LEARNED = (
    "Warning: the adapted model has learned little more than how frequent tokens are: {after:.3f} "
    "nats a character, where the frequencies of the held-out text alone reach {guess:.3f}. Take "
    "more steps, more text or another learning rate, or add fewer tokens."
)
_BETTER = "The adapted model is better by more than chance: {names}."
_WORSE = (
    "Warning: the adapted model is worse by more than chance: {names}. Keep the model as it came "
    "for this task, or adapt it with more text, more steps or a lower learning rate."
)
_NOT_APART = "No difference is more than chance; more `task_seeds` make the intervals narrower."
_CONSTANT_ANSWERS = (
    "Warning: of {seeds} fine-tunings each, {told} gave one answer to everything: they have "
    "learned nothing, and the difference says little of the models. Lower the task's learning "
    "rate, give the task `bias_correction`, or take more epochs."
)
_NOTES = (
    "In brackets: what guessing by frequency reaches. Accuracy and loss of masked tokens are of "
    "each model's own tokens; nats a character can be compared between vocabularies.",
)
_OF_NEW_HEADS = (
    "The model came without a head for {heads}: one was made, whose weights are random before "
    "training, so that it is no better than guessing there."
)


def _beside_guess(one: TextFigures, name: str, form: str) -> str:
    if name not in one.figures:
        return ""
    guess = f" ({form.format(one.guesses[name])})" if name in one.guesses else ""
    return form.format(one.figures[name]) + guess
