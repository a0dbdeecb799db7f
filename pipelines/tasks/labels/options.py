"""The options of a run for labels: files of one's own, GLUE, XNLI."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, Rules, nested, option, options_of
from keras_bert_impl.tokenization.long_texts import TRUNCATE, LongTexts
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.options import PooledConfig, SplitFiles


@dataclass(frozen=True, kw_only=True)
class LabelledTextsConfig(SplitFiles):
    """Files of examples, where they have what, and what labels are."""

    train_file: str | None = option(
        None,
        "Examples to train on: CSV, TSV or JSON (an object a line, or an array), plain or packed "
        "(.gz, .xz, .bz2), or tfds:NAME:SPLIT. Replaces a task of GLUE.",
        resume=FREE,  # the content is compared
    )
    dev_file: str | None = option(None, "Labelled examples to evaluate.", resume=FREE)
    test_file: str | None = option(
        None, "Examples to predict; where they have labels they are evaluated, too.", resume=FREE
    )
    text_column: str | None = option(
        None,
        "The column of the text: its name, or its number from 1 where the file has no header. By "
        "default guessed where it is plain.",
    )
    text_pair_column: str | None = option(None, "The column of the second text, of pairs.")
    label_column: tuple[str, ...] = option(
        (),
        "The column of the label: one of several classes, or a list (in JSON) of any number of "
        "them. Several columns, separated by commas, are a label each, with 0 or 1.",
    )
    header: bool | None = option(
        None,
        "Whether the first line of CSV and TSV names the columns; by default it does unless "
        "columns are given by numbers.",
    )
    regression: bool = option(False, "Labels are numbers to predict, not classes.")
    dev_share: float = option(
        0.0,
        "Without a dev file, the share of the training file that is evaluated instead of trained "
        "on (of each label alike; rows with the same texts and label stay together).",
        at_least=0,
        at_most=0.9,
    )
    dev_seed: int = option(0, "Which rows these are: a function of this number and their texts.")
    class_weights: tuple[str, ...] = option(
        (),
        "How much labels count in the loss: balanced (rare labels more), or LABEL=WEIGHT "
        "separated by commas (1 for all others).",
    )
    text_encoding: TextEncoding = nested(TextEncoding)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dev_share and (self.dev_file or not self.train_file):
            raise UserError(
                f"`dev_share={self.dev_share}` is a part of `train_file`; give that, and no "
                "`dev_file`."
            )
        if self.regression and self.class_weights:
            raise UserError(
                f"`class_weights={','.join(self.class_weights)}`: a regression has no classes; "
                "leave it out."
            )
        if self.regression and len(self.label_column) > 1:
            raise UserError(
                f"`label_column={','.join(self.label_column)}`: a regression has one column of "
                "numbers; name one."
            )

    @property
    def named_columns(self) -> list[str]:
        named = (self.text_column, self.text_pair_column, *self.label_column)
        return [name for name in named if name]

    @property
    def has_header(self) -> bool:
        if self.header is not None:
            return self.header
        return not any(name.isdecimal() for name in self.named_columns)


_Weight = Annotated[float, Rules(sentence="", more_than=0)]


@dataclass(frozen=True, kw_only=True)
class RunClassifierConfig(PooledConfig):
    """The options of a run for a task of GLUE or XNLI, or on files of one's own."""

    task_name: str | None = option(
        None,
        "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI, AX, or XNLI in a language, such as "
        "XNLI-zh; upper or lower case.",
        resume=FREE,  # what it stands for is compared
    )
    data_dir: Path | None = option(
        None,
        "The folder with the task's train.tsv, dev.tsv and test.tsv in GLUE's own layout, with "
        "AX's diagnostic.tsv, or the one in which XNLI's archives were unpacked.",
        resume=FREE,
    )
    own: LabelledTextsConfig = nested(LabelledTextsConfig)
    long_texts: LongTexts = nested(LongTexts)
    IN_A_MODEL: ClassVar = {"class_weights": dict[str, _Weight], "label_units": list[float]}
    PART_OF_THE_MODEL: ClassVar = (*PooledConfig.PART_OF_THE_MODEL, "regression")
    OF_FILES: ClassVar = (
        *("text_column", "text_pair_column", "label_column", "header"),
        "encoding",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        options = options_of(LabelledTextsConfig)
        given = [one.name for one in options if reduce(getattr, one.path, self.own) != one.default]
        if self.task_name is not None and given:
            raise UserError(f"`{given[0]}` is for files of one's own; leave `task_name` out.")
        if self.task_name is not None and self.data_dir is None:
            raise UserError(
                f"`task_name={self.task_name}` needs `data_dir`, the folder with its files."
            )
        if not self.own.names_files and self.task_name is None:
            raise UserError(
                "nothing says what to learn; give `task_name` and `data_dir` for a task of GLUE, "
                "or `train_file` for labelled texts of your own."
            )

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """See `PooledConfig.kept`; a task of GLUE has no options of one's own files."""
        known, kept = self.known(model), super().kept(model)
        if "task" in known:  # where texts are truncated, the model directory does not say so
            kept |= LongTexts.from_settings(known).settings or {"long_text": TRUNCATE}
        if self.task_name is not None:
            own = {one.name for one in options_of(LabelledTextsConfig)}
            return {name: value for name, value in kept.items() if name not in own}
        if "problem_type" in model.extra:
            kept["regression"] = model.extra["problem_type"] == "regression"
        gone = {"class_weights"}  # the task reads the weights, not how they were asked for
        if self.own.named_columns:  # they may be those of a file of another layout
            gone.add("header")
        if not self.own.train_file or self.own.dev_file:  # nothing to cut a dev set off
            gone |= {"dev_share", "dev_seed"}
        return {name: value for name, value in kept.items() if name not in gone}

    def kept_in_model(self, task: Any) -> Mapping[str, Any]:
        return {"num_texts": task.num_texts}
