"""The demo's last screen: what was reached, beside what guessing by word frequency reaches."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.progress import format_count, format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.metrics.frequency_baseline import (
    FrequencyBaseline,
    count_answers,
    frequency_baseline,
)

_BATCH_SIZE = 256
_TRAIN_BATCHES = 100  # 25,600 examples give the tokens' shares well enough


class DemoPaths(NamedTuple):
    """Where the demo's steps left what the report reads.

    Attributes:
        text: the sentences trained on.
        train, held_out: shards, as written to `output_file` of `create_pretraining_data`.
        run: the run directory.
        saved_model: the exported model.
    """

    text: Path
    train: Path
    held_out: Path
    run: Path
    saved_model: Path


def demo_report(
    paths: DemoPaths,
    seconds: Mapping[str, float],
    max_seq_length: int,
    max_predictions_per_seq: int,
) -> str:
    """Writes the screen from the files that the demo's steps left.

    Args:
        paths: those files.
        seconds: wall-clock seconds by tool.
        max_seq_length: tokens of a record.
        max_predictions_per_seq: masked tokens of a record.

    Raises:
        UserError: a file is missing.
    """
    vocab_size = find_model(paths.run / "model").config.vocab_size
    shape = (_BATCH_SIZE, max_seq_length, max_predictions_per_seq)
    some = PretrainingEvaluation([str(paths.train)], *shape, max_batches=_TRAIN_BATCHES)
    every = PretrainingEvaluation([str(paths.held_out)], *shape)
    train, held_out = (count_answers(source.batches(), vocab_size) for source in (some, every))
    lines = [
        f"Reached on held-out text ({held_out.labels.sum():,} sentence pairs, "
        f"{held_out.tokens.sum():,} masked tokens):",
        "",
        *results_table(
            RunDirectory(paths.run).read_eval_results(),
            frequency_baseline(train.tokens, held_out.tokens),
            held_out.larger_label,
        ),
        "",
        *_sizes(paths),
        "times   " + " · ".join(f"{tool} {format_duration(s)}" for tool, s in seconds.items()),
        f"total   {format_duration(sum(seconds.values()))}",
        f"curve   {paths.run}/learning_curve.png",
    ]
    return "\n".join(lines)


def results_table(
    results: Mapping[str, float], baseline: FrequencyBaseline, larger_label: float
) -> list[str]:
    """The table: the model's figures beside those of guessing.

    Args:
        results: the figures of `eval_results.txt`.
        baseline: what guessing by frequency reaches at the same masked positions.
        larger_label: the share of the more frequent next-sentence label.

    Example:
        >>> results = {"masked_lm_accuracy": 0.5, "masked_lm_loss": 2.0,
        ...            "next_sentence_accuracy": 0.75}
        >>> for row in results_table(results, FrequencyBaseline(0.05, 6.0), 0.55):
        ...     print(row)
                                      this model   guessing
        masked word, accuracy             50.0 %      5.0 %
        masked word, loss in nats          2.000      6.000
        next sentence, accuracy           75.0 %     55.0 %
    """
    rows = [
        ("masked word, accuracy", results["masked_lm_accuracy"], baseline.accuracy, "{:.1%}"),
        ("masked word, loss in nats", results["masked_lm_loss"], baseline.loss, "{:.3f}"),
        ("next sentence, accuracy", results["next_sentence_accuracy"], larger_label, "{:.1%}"),
    ]
    table = [f"{'':30}{'this model':>10}{'guessing':>11}"]
    for name, reached, guessed, form in rows:
        cells = [form.format(value).replace("%", " %") for value in (reached, guessed)]
        table.append(f"{name:30}{cells[0]:>10}{cells[1]:>11}")
    return table


def _sizes(paths: DemoPaths) -> list[str]:
    def size(path: Path) -> str:
        files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
        return f"{format_count(sum(f.stat().st_size for f in files if f.is_file()))}B"

    return [
        f"sizes   text {size(paths.text)} · training shards {size(paths.train)} · "
        f"model {size(paths.run / 'model')} · SavedModel {size(paths.saved_model)}",
    ]
