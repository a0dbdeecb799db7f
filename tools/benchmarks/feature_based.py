"""Makes table 7 of BERT's paper: a BiLSTM over frozen layers, six combinations, and fine-tuning.

Every cell is a `run_ner` with several seeds in a folder of its own, output_dir/DATA_SET/FEATURES;
the frozen layers are computed once for each data set. The same command again continues where it was
stopped, and adds seeds or data sets. The table is made of the files runs.json that the cells leave,
finished or not: table.md, also printed.

Example:
  python -m tools.benchmarks.feature_based --data_dirs=ner/wnut17,ner/gum
      --init_checkpoint=all-MiniLM-L6-v2 --output_dir=table7 --num_seeds=3
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from keras_bert_impl.models.head_settings import FEATURES
from keras_bert_impl.options import REQUIRED, check_options, option
from tools.config_flags import ConfigFlags
from tools.endings import tell_stopped

FINE_TUNING = "fine_tuning"
_FIGURES = {"eval_f1": "dev", "eval_test_f1": "test"}


@dataclass(frozen=True, kw_only=True)
class FeatureBasedConfig:
    """Options of the table."""

    data_dirs: tuple[str, ...] = option(REQUIRED, "Folders with train.txt, dev.txt, test.txt.")
    init_checkpoint: str = option(REQUIRED, "The model.")
    output_dir: Path = option(REQUIRED, "Where the runs and the table are.")
    features: tuple[str, ...] = option(
        (*FEATURES, FINE_TUNING), "The rows of the table: combinations, and fine_tuning."
    )
    num_seeds: int = option(3, "Runs of each cell.", at_least=1)
    seed: int = option(1, "The first seed.", at_least=0)
    max_seq_length: int = option(128, "Tokens of a row.", at_least=5)
    train_batch_size: int = option(16, "Rows of a step.", at_least=1)
    learning_rate: float = option(5e-5, "The peak rate of fine-tuning.", more_than=0)
    num_train_epochs: float = option(4.0, "Epochs of fine-tuning.", more_than=0)
    lstm_size: int = option(128, "Width of each direction of the BiLSTM.", at_least=1)
    lstm_learning_rate: float = option(1e-3, "The peak rate of the BiLSTM.", more_than=0)
    lstm_epochs: float = option(20.0, "Epochs of the BiLSTM.", more_than=0)

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, FeatureBasedConfig)


def cells(config: FeatureBasedConfig) -> Iterator[tuple[Path, list[str]]]:
    """The cells of the table: the folder and the flags of `run_ner` of each."""
    for data_dir in map(Path, config.data_dirs):
        for features in config.features:
            folder = config.output_dir / data_dir.name / features
            yield (
                folder,
                [
                    f"--data_dir={data_dir}",
                    f"--init_checkpoint={config.init_checkpoint}",
                    f"--output_dir={folder}",
                    f"--work_dir={config.output_dir / data_dir.name / 'work'}",
                    f"--num_seeds={config.num_seeds}",
                    f"--seed={config.seed}",
                    f"--max_seq_length={config.max_seq_length}",
                    f"--train_batch_size={config.train_batch_size}",
                    *("--do_train", "--do_eval", "--eval_batch_size=32", "--keep_checkpoint_max=1"),
                    *_own_flags(config, features),
                ],
            )


def _own_flags(config: FeatureBasedConfig, features: str) -> list[str]:
    """The flags in which fine-tuning and the BiLSTM differ."""
    if features == FINE_TUNING:
        epochs = config.num_train_epochs
        return [f"--learning_rate={config.learning_rate}", f"--num_train_epochs={epochs}"]
    return [
        f"--features={features}",
        f"--lstm_size={config.lstm_size}",
        f"--lstm_learning_rate={config.lstm_learning_rate}",
        f"--num_train_epochs={config.lstm_epochs}",
    ]


def table(folder: Path, data_sets: Sequence[str], rows: Sequence[str]) -> list[str]:
    """The table of the cells that are there: F1, mean ± deviation of one run (number of runs).

    Args:
        folder: holds DATA_SET/ROW/runs.json.
        data_sets: what columns are of.
        rows: what stands in the first column.
    """
    from pipelines.many_runs.seeds_report import stored_spreads
    from pipelines.many_runs.spread import markdown_table

    found = {(name, row): stored_spreads(folder / name / row) for name in data_sets for row in rows}
    columns = [
        (name, figure)
        for name in data_sets
        for figure in _FIGURES
        if any(figure in found[name, row] for row in rows)
    ]

    def cell(name: str, row: str, figure: str) -> str:
        spread = found[name, row].get(figure)
        return f"{spread:.2f} ({spread.runs})" if spread else ""

    header = ["features", *(f"{name} {_FIGURES[figure]}" for name, figure in columns)]
    return markdown_table(
        header, [[row, *(cell(name, row, figure) for name, figure in columns)] for row in rows]
    )


def _run(config: FeatureBasedConfig) -> None:
    from keras_bert_impl.files import make_folder, open_whole
    from pipelines.many_runs.runs import stop_on_signal

    names = [Path(data_dir).name for data_dir in config.data_dirs]
    *_, (last, _) = cells(config)
    with stop_on_signal() as stop:  # around all cells: a stop between two of them counts, too
        for folder, words in cells(config):
            began = time.monotonic()
            finished = _run_cell(words)
            lines = table(config.output_dir, names, config.features)
            with open_whole(make_folder(config.output_dir) / "table.md") as file:
                file.writelines(f"{line}\n" for line in lines)
            seconds = round(time.monotonic() - began)
            print(json.dumps({"cell": str(folder), "seconds": seconds, "flags": words}), flush=True)
            if not finished or (stop.requested and folder != last):
                tell_stopped("Stopped; the same command continues.")
                return
    print("\n".join(lines))


def _run_cell(words: Sequence[str]) -> bool:
    """Runs `run_ner` with several seeds; whether all of them are finished."""
    from pipelines.many_runs.seeds import run_many
    from pipelines.tasks.tagging.options import RunNerConfig
    from pipelines.tasks.tagging.task import task_of
    from tools import run_ner
    from tools.fine_tuning import flags_of_one, show_lines_of

    flags = ConfigFlags(run_ner.__doc__, RunNerConfig)  # none of another cell
    flags.parse(words)
    config = flags.config(flags=flags.as_flagfile())
    set_up = partial(show_lines_of, "run_ner")
    return run_many(config, task_of, partial(flags_of_one, flags), set_up).finished


main = FLAGS.main_of(_run, continues=True)


if __name__ == "__main__":
    sys.exit(main())
