"""A made language, a tiny BERT that lacks its words, and tools that only pretend to train."""

import json
import shutil

import numpy as np

from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.studies.adapt import AdaptConfig
from tests.support.model_folders import tiny_config, write_known
from tests.support.toy_study import folder_of
from tools.table import ToolPrograms

LETTERS = "abdegiklmnoprstu"
TOKENS = [*SPECIAL_TOKENS, "[unused0]", ".", *LETTERS, *(f"##{letter}" for letter in LETTERS)]


def language(seed=1, words=24):
    """Words of four to seven letters."""
    draw = np.random.default_rng(seed)
    letters = list(LETTERS)
    return ["".join(draw.choice(letters, draw.integers(4, 8))) for _ in range(words)]


def write_language(path, documents, seed=2):
    """Documents of two of the words each, one sentence a line: who knows the one can tell both."""
    draw, words, lines = np.random.default_rng(seed), language(), []
    for _ in range(documents):
        at = 2 * int(draw.integers(len(words) // 2))
        lines += [" ".join(draw.choice(words[at : at + 2], 5)) + "." for _ in range(6)]
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def write_model(folder, heads=True, tokens=TOKENS, do_lower_case=True, **changes):
    """A tiny model that knows letters only, or certain tokens."""
    sizes = {"vocab_size": len(tokens), "max_position_embeddings": 32, **changes}
    build = BertPretrainer if heads else BertEncoder
    casing = {"do_lower_case": do_lower_case}
    return write_known(folder, build, tiny_config(**sizes), vocabulary=Vocabulary(tokens), **casing)


def toy_adaptation(folder, **changes):
    """A small adaptation; the model and the text are made where they are missing."""
    if not (folder / "model").exists():
        write_model(folder / "model", changes.pop("heads", True))
    if not (folder / "text.txt").exists():
        write_language(folder / "text.txt", 40)
    values = {
        "init_checkpoint": str(folder / "model"),
        "input_file": (str(folder / "text.txt"),),
        "output_dir": folder / "adapted",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "num_train_steps": 20,
        "num_workers": 1,
    }
    return AdaptConfig(**{**values, **changes})


_LOSSES = {"evaluated-original": 3.0, "heads": 2.5, "trained": 2.0}


class PretendingTrainers(ToolPrograms):
    """Runs the tools for data here; what trains only leaves figures and a model.

    Args:
        stop_at: the tool at whose first start Ctrl-C comes; None: never.
    """

    def __init__(self, stop_at=None):
        self.started, self._stop_at = [], stop_at

    def run(self, tool, flags):
        folder = folder_of(flags)
        folder = folder.parent if folder.name == "model" else folder
        self.started.append(folder.name.rpartition("-")[0])
        if tool == self._stop_at:
            raise KeyboardInterrupt
        config = self.config_of(tool, flags)
        if tool == "run_pretraining":
            self._train(config, folder)
        elif tool.startswith("run_"):
            score = 0.8 if "adapted" in folder.name else 0.6
            runs = [{"eval_accuracy": score + 0.01 * n, "eval_loss": 1.0} for n in range(3)]
            (folder / "runs.json").write_text(json.dumps({"runs": runs}))
        else:
            return super().run(tool, flags)
        return 0

    def _train(self, config, folder):
        loss = _LOSSES[folder.name.rpartition("-")[0]]
        figures = f"masked_lm_loss = {loss}\nmasked_lm_accuracy = {1 / loss}\n"
        figures += "next_sentence_accuracy = 0.5\nglobal_step = 20\n"
        (folder / "eval_results.txt").write_text(figures)
        guess = {"masked_lm_loss": {"words": "guessing", "value": 4.0}}
        (folder / "guesses.json").write_text(json.dumps(guess))
        if config.do_train:
            shutil.copytree(config.init_checkpoint, folder / "model", dirs_exist_ok=True)
            (folder / "learning_curve.png").write_bytes(b"a picture")
            (folder / ".finished").write_text("20 15\n" if config.training.save_best else "20\n")
