"""The options of an adaptation: which model, which text, how far, and which task tells the gain."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, ONCE, REQUIRED, check_options, option
from pipelines.many_runs.commands import FINE_TUNING_TOOLS, flag_words


@dataclass(frozen=True, kw_only=True)
class AdaptConfig(CheckpointOptions):
    """The options of an adaptation."""

    init_checkpoint: str = option(
        REQUIRED,
        "The model to adapt: a model directory, a TF1 checkpoint (prefix or folder), a run's "
        "folder, or a name on the Hugging Face hub.",
    )
    input_file: tuple[str, ...] = option(
        (),
        "The text, as split_sentences reads it: paths, folders, glob patterns or tfds:NAME:SPLIT, "
        "separated by commas.",
    )
    output_dir: Path = option(REQUIRED, "The folder for everything.", resume=FREE)
    held_out_every: int = option(
        20,
        "One document in this many is never trained on; all figures about text come from these.",
        at_least=2,
    )
    num_new_tokens: int = option(
        8000, "Add at most this many tokens; 0 leaves the vocabulary as it is.", at_least=0
    )
    max_seq_length: int = option(128, "Length of an example in tokens.", at_least=5)
    max_predictions_per_seq: int = option(20, "Most masked positions of an example.", at_least=1)
    num_train_steps: int = option(10_000, "Optimizer steps at most.", at_least=1)
    train_batch_size: int = option(32, "Examples of a step.", at_least=1)
    learning_rate: float = option(
        5e-5,
        "The peak learning rate: low, because a short training does not repair what a high one "
        "breaks in a model that has learned.",
        more_than=0,
    )
    seed: int = option(
        12345, "Fixes the weights of new heads, dropout and the order of the data.", at_least=0
    )
    text_flags: str = option("", "Further flags of split_sentences (its text_field, say).")
    data_flags: str = option(
        "", "Further flags of create_pretraining_data (its dupe_factor, say, which is 3 here)."
    )
    pretraining_flags: str = option(
        "",
        "Further flags of run_pretraining (its precision or early_stopping_evals, say); "
        "they override ours.",
    )
    task: str | None = option(
        None,
        "A task that shows the gain: run_classifier, run_ner, run_squad or run_swag and its flags. "
        "The original and the adapted model are fine-tuned for it, with the same flags and three "
        "seeds.",
    )
    num_workers: int | None = option(
        None,
        "How many processes work on the text; by default one for each processor. It changes no "
        "result.",
        at_least=1,
        resume=FREE,
    )
    dry_run: bool = option(False, "List the commands, and write nothing.", resume=ONCE)

    def __post_init__(self) -> None:
        check_options(self)
        if not self.input_file:
            raise UserError("`input_file` is missing; name the text to adapt the model to.")
        for name in ("text_flags", "data_flags", "pretraining_flags"):
            self.flags(name)
        if self.task is not None and (tool := self.task_words[0]) not in FINE_TUNING_TOOLS:
            known = ", ".join(FINE_TUNING_TOOLS)
            raise UserError(f"`task={tool}`: begin with one of {known}, then its flags.")

    def flags(self, name: str) -> tuple[str, ...]:
        """The flags that an option such as `data_flags` holds."""
        return flag_words(name, getattr(self, name))

    @property
    def task_words(self) -> tuple[str, tuple[str, ...]]:
        """The task's tool and its flags."""
        tool, _, rest = (self.task or "").strip().partition(" ")
        return tool, flag_words("task", rest)
