"""The demo's last screen: what was reached, beside what guessing by word frequency reaches."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.progress import format_count, format_duration
from keras_bert_impl.training.guesses import Guess, read_guesses
from keras_bert_impl.training.run_directory import RunDirectory

_FIGURES = {
    "masked_lm_accuracy": ("masked word, accuracy", "{:.1%}"),
    "masked_lm_loss": ("masked word, loss in nats", "{:.3f}"),
    "next_sentence_accuracy": ("next sentence, accuracy", "{:.1%}"),
}


class DemoPaths(NamedTuple):
    """Where the demo's steps left what the report reads.

    Attributes:
        text: the sentences trained on.
        train: shards, as written to `output_file` of `create_pretraining_data`.
        run: the run directory.
    """

    text: Path
    train: Path
    run: Path


def demo_report(paths: DemoPaths, seconds: Mapping[str, float]) -> str:
    """Writes the screen from the files that the demo's steps left.

    Args:
        paths: those files.
        seconds: wall-clock seconds by tool.

    Raises:
        UserError: a file is damaged.
    """
    run = RunDirectory(paths.run)
    lines = [
        "Reached on held-out text:",
        "",
        *results_table(run.read_eval_results(), read_guesses(run)),
        "",
        f"sizes   text {_size(paths.text)} · training shards {_size(paths.train)} · "
        f"model {_size(paths.run / 'model')}",
        "times   " + " · ".join(f"{tool} {format_duration(s)}" for tool, s in seconds.items()),
        f"total   {format_duration(sum(seconds.values()))}",
        f"curve   {paths.run}/learning_curve.png",
    ]
    return "\n".join(lines)


def results_table(results: Mapping[str, float], guesses: Mapping[str, Guess]) -> list[str]:
    """The table: the model's figures beside those of guessing.

    Args:
        results: the figures of `eval_results.txt`.
        guesses: what guessing reaches on the same examples.

    Example:
        >>> results = {"masked_lm_accuracy": 0.5, "masked_lm_loss": 2.0,
        ...            "next_sentence_accuracy": 0.75}
        >>> reached = {"masked_lm_accuracy": 0.05, "masked_lm_loss": 6.0,
        ...            "next_sentence_accuracy": 0.55}
        >>> guesses = {name: Guess("guessing", value) for name, value in reached.items()}
        >>> for row in results_table(results, guesses):
        ...     print(row)
                                      this model   guessing
        masked word, accuracy             50.0 %      5.0 %
        masked word, loss in nats          2.000      6.000
        next sentence, accuracy           75.0 %     55.0 %
    """
    table = [f"{'':30}{'this model':>10}{'guessing':>11}"]
    for name, (words, form) in _FIGURES.items():
        guessed = _shown(form, guesses[name].value) if name in guesses else "–"
        table.append(f"{words:30}{_shown(form, results[name]):>10}{guessed:>11}")
    return table


def _shown(form: str, value: float) -> str:
    return form.format(value).replace("%", " %")


def _size(path: Path) -> str:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return f"{format_count(sum(f.stat().st_size for f in files if f.is_file()))}B"
