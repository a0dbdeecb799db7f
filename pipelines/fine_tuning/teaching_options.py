"""The options of making small models of a trained one."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, REQUIRED, Options, option


@dataclass(frozen=True, kw_only=True)
class DistillConfig(Options):
    """The options of making small models."""

    teacher: str = option(
        REQUIRED,
        "The trained model: the directory of a fine-tuned one (classes, numbers, tags, answers, "
        "endings) or of vectors (also sentence-transformers'), or a name on the Hugging Face hub.",
    )
    output_dir: Path = option(REQUIRED, "The folder for everything.", resume=FREE)
    dev_file: str = option(
        REQUIRED,
        "What all models are compared on, as the task's own tool reads it (run_classifier, "
        "run_ner, ...).",
    )
    train_file: str | None = option(None, "What to learn from, likewise.")
    unlabelled_file: tuple[str, ...] = option(
        (),
        "More to learn from, without labels: files that the task's tool predicts; for vectors "
        "texts, one a line, or a column of a table. Several are separated by commas.",
    )
    num_layers: tuple[int, ...] = option(
        (), "The layers of each student: one number, or several; by default 3.", at_least=1
    )
    layers: tuple[int, ...] = option(
        (),
        "Which layers of the teacher, from 0, make the one student, in place of num_layers; by "
        "default evenly spread ones, the last among them.",
        at_least=0,
    )
    lessons: str = option(
        "outputs",
        "What is learned: outputs, the teacher's logits or vectors; hidden_states, those of every "
        "layer as well (TinyBERT); or relations, those among the queries, keys and values of the "
        "last layer as well (MiniLM, version 2). The last two compute the teacher in every step.",
        choices=("outputs", "hidden_states", "relations"),
    )
    temperature: float = option(
        2.0,
        "What logits are divided by before they are compared; numbers and vectors have none.",
        more_than=0,
        at_most=100,
    )
    label_weight: float = option(
        0.0,
        "The share of the labels' own loss in that of a row with a label; answers in a passage "
        "and vectors are learned from the teacher alone.",
        at_least=0,
        at_most=1,
    )
    task_flags: str = option(
        "",
        "Further flags of the task's tool (num_train_epochs, learning_rate, seed, its columns and "
        "lengths); they override ours: four epochs at a rate of 2e-4. None of files or models.",
    )
    flags: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.train_file or self.unlabelled_file):
            raise UserError("there is nothing to learn from; name a `train_file`.")
        if self.layers and self.num_layers:
            raise UserError("`layers` and `num_layers` say the same; leave one of them out.")
