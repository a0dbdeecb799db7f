"""What every tool that fine-tunes prints at its end."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.fine_tuning.run import FineTuningResults


def show_results(results: "FineTuningResults") -> None:
    """Prints where the training stands, the figures, and the files that were written.

    Args:
        results: of the run. A figure that others reached with the same model stands beside ours.
    """
    training = results.training
    if training and not training.finished:
        print(f"Stopped after step {training.step}; the same command continues.")
    elif training and training.resumed_from == training.step:
        print("Training was finished before; its model is in model/ of the output folder.")
    for name, value in sorted(results.evaluation.items()):
        expected = results.expected.get(name)
        print(f"{name} = {value}" + (f"  ({expected})" if expected else ""))
    for path in results.prediction_files:
        print(f"wrote {path}")
