"""A small study whose tools only pretend to work."""

import re
from pathlib import Path

from pipelines.studies.recipe import RunAblationsConfig
from tools.table import ToolPrograms

_BETTER = {"bert": 0.9, "no-nsp": 0.9, "left-to-right": 0.7, "right-to-left": 0.6}


def toy_recipe(folder: Path, **changes) -> RunAblationsConfig:
    """A recipe of two sizes and two tasks."""
    values = {
        "output_dir": folder / "study",
        "data_dir": folder,
        "input_file": "{data}/text.jsonl",
        "num_shards": 2,
        "vocab_size": 100,
        "data_flags": "--max_seq_length=32 --nodo_lower_case",
        "model_settings": '{"max_position_embeddings": 64}',
        "size": ("small 2 16 2", "tiny 1 16 2"),
        "pretraining_flags": "--max_seq_length=32 --num_train_steps=40 --save_checkpoints_steps=5",
        "task": (
            "MRPC eval_f1 run_classifier --task_name=MRPC --data_dir={data}/MRPC",
            "NER eval_f1 run_ner --data_dir={data}/ner",
        ),
        "fine_tuning_flags": "--max_seq_length=32",
        "seeds": (1, 2),
        "num_models": 4,
    }
    return RunAblationsConfig(**{**values, **changes})


def folder_of(flags):
    """The folder of a command."""
    values = dict(one.lstrip("-").split("=", 1) for one in flags if "=" in one)
    if "output_dir" in values:
        return Path(values["output_dir"])
    names = ("output_file", "output", "vocab_file")
    return next(Path(values[name]).parent for name in names if name in values)


class PretendingTools(ToolPrograms):
    """Understands the flags of the real tools; a run only leaves its figures.

    Args:
        stop_at: stops as Ctrl-C does when so many runs were started; None never.
        random: what random weights reach.
    """

    def __init__(self, stop_at=None, random=0.5):
        self.started, self._stop_at, self._random = [], stop_at, random

    def run(self, tool, flags):
        self.config_of(tool, flags)
        folder = folder_of(flags)
        self.started.append(folder.name)
        if len(self.started) == self._stop_at:
            raise KeyboardInterrupt

        if tool.startswith("run_"):
            for name in ("model", "checkpoints"):
                (folder / name).mkdir(exist_ok=True)
            (folder / "eval_results.txt").write_text(
                f"eval_f1 = {self._score(folder.name)}\nmasked_lm_loss = 2.0\nglobal_step = 40\n"
            )
        return 0

    def _score(self, name):
        start = re.sub(r"^(MRPC|NER)-", "", name)
        known = [score for key, score in _BETTER.items() if start.startswith(key)]
        seed = int(re.findall(r"-(\d+)-[0-9a-f]{8}$", name)[0])
        return (known[0] if known else self._random) + 0.001 * seed
