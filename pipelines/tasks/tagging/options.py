"""The options of a run for tags, and of scoring tagged files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from keras_bert_impl.config import BertConfig
from keras_bert_impl.options import FREE, REQUIRED, Options, bounded, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.options import FineTuningConfig, SplitFiles
from pipelines.tasks.tagging.schemes import SCHEMES

AUTO, DOCUMENT, SENTENCE = "auto", "document", "sentence"


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(SplitFiles):
    """The files and how they are read."""

    FILE_NAMES: ClassVar = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}

    data_dir: Path | None = option(
        None, "The folder with train.txt, dev.txt and test.txt.", resume=FREE
    )
    train_file: Path | None = option(
        None, "Tagged sentences to train on, in place of train.txt of data_dir.", resume=FREE
    )
    dev_file: Path | None = option(
        None, "Tagged sentences to evaluate, as train_file.", resume=FREE
    )
    test_file: Path | None = option(
        None, "Sentences to tag, as train_file; evaluated where they have tags.", resume=FREE
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
    context: str = option(
        AUTO,
        "What the model reads around a word: the document, from one line -DOCSTART- to the next "
        "(in a file without such lines the sentence), or the sentence; auto: as the model was "
        "trained, or the document.",
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
    text_encoding: TextEncoding = nested(TextEncoding)


@dataclass(frozen=True, kw_only=True)
class RunNerConfig(FineTuningConfig):
    """The options of a run for named entities."""

    files: TaggingConfig = nested(TaggingConfig)
    OF_FILES: ClassVar = ("word_column", "tag_column", "encoding")
    LOOKED_UP: ClassVar = ("word_column", "tag_column")
    IN_A_MODEL: ClassVar = {
        "tagging_scheme": bounded(str, choices=tuple(SCHEMES)),
        "tag_unit": bounded(str, choices=("words", "characters")),
        "context": bounded(str, choices=(DOCUMENT, SENTENCE)),
        "columns": bounded(int, at_least=1),
        "form": bounded(str, choices=("columns", "sentences", "texts")),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.files.check_names_files("tag")

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """See `FineTuningConfig.kept`; what is given as auto is as the model was trained, too."""
        left_open = [name for name in self.given or () if getattr(self.files, name, None) == AUTO]
        kept = super().kept(model).items()
        return {name: value for name, value in kept if name not in left_open}


@dataclass(frozen=True, kw_only=True)
class ScoreTagsConfig(Options):
    """Which tagged files are scored."""

    predictions_file: tuple[Path, ...] = option(
        REQUIRED,
        "Files with a word, its tag and last the predicted tag on each line; several are runs "
        "whose figures are averaged, such as those of other seeds.",
    )
    word_column: int = option(1, "The column of the words, from 1.", at_least=1)
    tag_column: int = option(
        0, "The column of the right tags, from 1; 0 is the last but one.", at_least=0
    )
    tagging_scheme: str = option(
        AUTO,
        "How tags write entities: iob1, iob2, bioes, bilou or bare (types only); auto finds it in "
        "the first file.",
        choices=(AUTO, "iob1", "iob2", "bioes", "bilou", "bare"),
    )
    text_encoding: TextEncoding = nested(TextEncoding)
