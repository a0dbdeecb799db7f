"""What guessing reaches: the bar beside a figure of an evaluation, kept with the run."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import read_json_object
from keras_bert_impl.training.run_directory import RunDirectory


class Guess(NamedTuple):
    """The value that a figure has without any model.

    Attributes:
        words: how it is guessed, e.g. "always the most frequent class".
        value: what this guessing reaches on the evaluation set.

    Example:
        >>> str(Guess("always the most frequent class", 0.5507))
        'always the most frequent class: 0.5507'
    """

    words: str
    value: float

    def __str__(self) -> str:
        return f"{self.words}: {self.value:.6g}"


def line_of(name: str, value: float, guesses: Mapping[str, Guess]) -> str:
    """Formats a figure as it is printed, with what guessing reaches.

    Args:
        guesses: by the figures' names; those of others are left aside.

    Example:
        >>> line_of("eval_accuracy", 0.84, {"eval_accuracy": Guess("always yes", 0.55)})
        'eval_accuracy = 0.84  (always yes: 0.55)'
        >>> line_of("global_step", 7, {})
        'global_step = 7'
    """
    return f"{name} = {value}" + (f"  ({guesses[name]})" if name in guesses else "")


def write_guesses(run: RunDirectory, guesses: Mapping[str, Guess]) -> None:
    """Writes `guesses.json`, by the names that the figures have in `evaluations.jsonl`.

    The file stands beside `eval_results.txt`, which has the original's names.

    Example:
        >>> import tempfile
        >>> run = RunDirectory.open(tempfile.mkdtemp())
        >>> write_guesses(run, {"accuracy": Guess("always yes", 0.55)})
        >>> read_guesses(run)
        {'accuracy': Guess(words='always yes', value=0.55)}
    """
    with open_whole(run.guesses) as file:
        json.dump({name: guess._asdict() for name, guess in guesses.items()}, file, indent=1)
        file.write("\n")


def read_guesses(run: RunDirectory) -> dict[str, Guess]:
    """Reads `guesses.json`; a run from before there was one has none."""
    if not run.guesses.exists():
        return {}
    kept = read_json_object(run.guesses)
    return {name: Guess(**one) for name, one in kept.items()}
