"""What a task with tags is told of its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from keras_bert_impl.options import FREE, check_options, option
from pipelines.tasks.split_files import SplitFiles

AUTO, DOCUMENT, SENTENCE = "auto", "document", "sentence"


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(SplitFiles):
    """The files and how they are read.

    Raises:
        UserError: a value out of range.
    """

    FILE_NAMES: ClassVar = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}

    data_dir: Path | None = option(
        None, "The folder with train.txt, dev.txt and test.txt.", resume=FREE
    )
    train_file: Path | None = option(
        None, "Tagged sentences to train on, in place of train.txt of data_dir.", resume=FREE
    )
    dev_file: Path | None = option(None, "Tagged sentences to score, as train_file.", resume=FREE)
    test_file: Path | None = option(
        None, "Sentences to tag, as train_file; scored where they have tags.", resume=FREE
    )
    word_column: int | None = option(
        None,
        "The column of the words, from 1; by default that which the model was trained with, or 1.",
        at_least=1,
        resume=FREE,
    )
    tag_column: int | None = option(
        None,
        "The column of the tags, from 1; -1 is the last one. By default that which the model was "
        "trained with, or the last one.",
        at_least=-1,
        resume=FREE,
    )
    tagging_scheme: str = option(
        AUTO,
        "How tags write entities: iob1, iob2, bioes, bilou or bare (types only); auto finds it in "
        "the training file.",
        choices=(AUTO, "iob1", "iob2", "bioes", "bilou", "bare"),
        resume=FREE,  # what it stands for is compared
    )
    tag_unit: str = option(
        AUTO,
        "What stands on a line: words, or characters with blanks among them; auto: characters "
        "where every line of the training file has one.",
        choices=(AUTO, "words", "characters"),
        resume=FREE,  # what it stands for is compared
    )
    context: str = option(
        AUTO,
        "What a word is seen in: the document, from one line -DOCSTART- to the next (in a file "
        "without such lines the sentence), or the sentence; auto: as the model was trained, or "
        "the document.",
        choices=(AUTO, DOCUMENT, SENTENCE),
        resume=FREE,
    )
    doc_stride: int = option(
        0,
        "Tokens from the start of a window to the start of the next one; 0 is half a window, so "
        "that every token is in two.",
        at_least=0,
        resume=FREE,
    )
    keep_broken_tags: bool = option(
        False,
        "Read a tag that starts nowhere as the beginning of an entity, as conlleval does, instead "
        "of refusing it.",
        resume=FREE,
    )

    def __post_init__(self) -> None:
        check_options(self)
