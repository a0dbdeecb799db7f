"""A tiny corpus and vocabulary, and shards made from them."""

from pathlib import Path

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe
from pipelines.runners.local import run_local

WORDS = ("the", "fox", "saw", "a", "hen", "and", "ran", "##s", "slow", "##ly", ".", "home")
RECIPE = Recipe(max_seq_length=32, max_predictions_per_seq=4, dupe_factor=3, random_seed=5)


def write_vocabulary(folder: Path) -> Path:
    """Writes a vocabulary of 17 tokens and one [unused0]."""
    path = folder / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in (*SPECIAL_TOKENS, "[unused0]", *WORDS)))
    return path


def write_corpus(folder: Path, documents: int = 40) -> Path:
    """Writes documents of one to nine sentences of one to ten words."""
    path = folder / "corpus.txt"
    lines = []
    for document in range(documents):
        for sentence in range(1 + document * 7 % 9):
            words = [
                WORDS[(document * 5 + sentence * 3 + word * word) % 7]
                for word in range(1 + (document + sentence * 3) % 10)
            ]
            lines.append(" ".join(words) + ".")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def make_config(
    folder: Path, output: str = "out/train.tfrecord", **changes
) -> PretrainingDataConfig:
    """A configuration for the tiny corpus; writes corpus and vocabulary where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "corpus.txt").exists():
        write_corpus(folder)
    if not (folder / "vocab.txt").exists():
        write_vocabulary(folder)
    values = {
        "input_file": str(folder / "corpus.txt"),
        "vocab_file": str(folder / "vocab.txt"),
        "output_file": str(folder / output),
        "recipe": RECIPE,
        "num_shards": 3,
        "num_workers": 0,
        **changes,
    }
    return PretrainingDataConfig(**values)


def make_shards(folder: Path, **changes) -> PretrainingDataConfig:
    """Makes shards of the tiny corpus; returns what they were made with."""
    config = make_config(folder, **changes)
    run_local(config)
    return config


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
