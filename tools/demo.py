"""The steps of the demo: commands of other tools, from Python's documentation to a model."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.files import make_folder, open_whole, without_links
from keras_bert_impl.json_files import json_text
from keras_bert_impl.options import Options, option
from keras_bert_impl.progress import format_duration
from pipelines.runs.demo_text import write_demo_text
from pipelines.studies.commands import run_step
from tools.table import tool_named


@dataclass(frozen=True, kw_only=True)
class DemoConfig(Options):
    """How large the demo is, and where it goes."""

    output_dir: str = option("demo", "The folder for everything the demo makes.")
    num_train_steps: int = option(2000, "How many steps to train (64 examples each).", at_least=1)
    vocab_size: int = option(3000, "How many WordPiece tokens to learn.", at_least=300)
    only_text: bool = option(False, "Only write the text, train.jsonl and held_out.jsonl.")


_MODEL = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,  # a small model that sees its text for minutes does not overfit
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "initializer_range": 0.05,  # narrow layers start faster with larger weights
}
_MASKED = (
    "Return [MASK] if the object is an instance of the class.",
    "See also the documentation [MASK] this function.",
    "If the file does not exist, an [MASK] is raised.",
)
# In short rows there are fewer distances to learn, so the model sees sooner what neighbours say.
_LENGTHS = "--max_seq_length=24 --max_predictions_per_seq=8"


def _in(folder: Path, commands: Mapping[str, str]) -> dict[str, list[str]]:
    """The words of commands by what they are for, with the folder for `@`."""
    return {
        purpose: [word.replace("@", str(folder)) for word in shlex.split(command)]
        for purpose, command in commands.items()
    }


def plan(folder: Path, num_train_steps: int, vocab_size: int) -> dict[str, list[str]]:
    """The words of the demo's commands by what they are for, in order."""
    create = f"create_pretraining_data --vocab_file=@/vocab.txt --do_lower_case {_LENGTHS}"
    commands = {
        "Real text that is already on this machine: the documentation of Python": (
            "demo --only_text --output_dir=@"
        ),
        "One sentence a line, an empty line between documents (train)": (
            "split_sentences --input_file=@/train.jsonl --output_file=@/train.txt"
        ),
        "One sentence a line, an empty line between documents (held_out)": (
            "split_sentences --input_file=@/held_out.jsonl --output_file=@/held_out.txt"
        ),
        "A WordPiece vocabulary of our own": (
            "learn_vocabulary --input_file=@/train.txt --vocab_file=@/vocab.txt --do_lower_case "
            f"--vocab_size={vocab_size}"
        ),
        # Each document is used several times, with new draws each time; twice the share that BERT
        # masks learns sooner.
        "Sentence pairs with masked words, as TFRecord shards (train)": (
            f"{create} --input_file=@/train.txt --output_file=@/shards/train.tfrecord "
            "--dupe_factor=10 --masked_lm_prob=0.3"
        ),
        "Sentence pairs with masked words, as TFRecord shards (held_out)": (
            f"{create} --input_file=@/held_out.txt --output_file=@/shards/held_out.tfrecord "
            "--dupe_factor=2"
        ),
        "Pre-training: masked words and next sentences, then evaluation on held-out text": (
            "run_pretraining --input_file=@/shards/train.tfrecord* --output_dir=@/run "
            "--eval_input_file=@/shards/held_out.tfrecord* --vocab_file=@/vocab.txt "
            f"--bert_config_file=@/bert_config.json {_LENGTHS} --do_train --do_eval "
            f"--train_batch_size=64 --num_train_steps={num_train_steps} "
            f"--num_warmup_steps={num_train_steps // 10} --learning_rate=1e-3 --log_steps=50 "
            f"--save_checkpoints_steps={max(1, num_train_steps // 4)} --eval_batch_size=64"
        ),
        "The model is loaded and fills in masked words": "fill_mask --model=@/run/model "
        + " ".join(f"--text='{text}'" for text in _MASKED),
    }
    return _in(folder, commands)


def next_steps(folder: Path) -> dict[str, list[str]]:
    """Three commands to try when the demo has ended."""
    commands = {
        "Fill in a word of your own": (
            "fill_mask --model=@/run/model --text='This is a subclass of the base [MASK].'"
        ),
        "Look at what the model was trained on: a page with examples and plots": (
            "inspect_pretraining_data --input_file=@/shards/train.tfrecord "
            "--vocab_file=@/vocab.txt --html=@/train.html"
        ),
        "Export it as a SavedModel, for programs that know TensorFlow only": (
            "export_saved_model --model=@/run/model --output_dir=@/saved_model"
        ),
    }
    return _in(folder, commands)


def _show(purpose: str, tool: str, *flags: str) -> None:
    words = [f"{_command()} {tool}", *map(shlex.quote, flags)]
    print(f"\n{purpose}\n\n  " + " \\\n      ".join(words) + "\n", flush=True)


def _command() -> str:
    """`keras-bert`, with its folder where the shell would not find it."""
    beside = Path(sys.executable).with_name("keras-bert")
    if shutil.which("keras-bert") or not beside.exists():
        return "keras-bert"
    folder = beside.parent
    return str(beside.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else beside)


def run_demo(config: DemoConfig) -> None:
    """Runs the steps, one after the other."""
    folder = make_folder(config.output_dir)
    for path in folder.iterdir():
        without_links(path)  # the tools would take it for what their user names
    if config.only_text:
        size = write_demo_text(folder / "train.jsonl", folder / "held_out.jsonl")
        print(f"{size / 1e6:.2f} MB of text")
        return
    with open_whole(folder / "bert_config.json") as file:
        file.write(json_text({"vocab_size": config.vocab_size, **_MODEL}, indent=2))
    print(f"The model's shape is in {folder}/bert_config.json; everything goes to {folder}/.")
    steps = plan(folder, config.num_train_steps, config.vocab_size)
    seconds = 0.0
    for number, (purpose, (tool, *flags)) in enumerate(steps.items(), start=1):
        _show(f"[{number}/{len(steps)}] {purpose}", tool, *flags)
        seconds += run_step(f"Step {number}, {tool},", tool_named(tool).main, flags)
    curve = f"its learning curve is {folder}/run/learning_curve.png"
    print(f"\nAll steps took {format_duration(seconds)}; the model is {folder}/run/model, {curve}.")
    print("\nTry next:")
    for purpose, words in next_steps(folder).items():
        _show(purpose, *words)
