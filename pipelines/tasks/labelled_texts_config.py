"""The options of a run on somebody's own labelled files."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, check_options, option


@dataclass(frozen=True, kw_only=True)
class LabelledTextsConfig:
    """Files of examples, where they have what, and what labels are.

    Raises:
        UserError: a value out of range, or options that exclude each other.
    """

    train_file: str | None = option(
        None,
        "Examples to train on: CSV, TSV or JSON (an object a line, or an array), plain or packed "
        "(.gz, .xz, .bz2), or tfds:NAME:SPLIT. Stands in place of a task of GLUE.",
        resume=FREE,  # the content is compared
    )
    dev_file: str | None = option(
        None, "Labelled examples to score, in the same forms.", resume=FREE
    )
    test_file: str | None = option(
        None,
        "Examples to answer, in the same forms; where they have labels they are scored, too.",
        resume=FREE,
    )
    text_column: str | None = option(
        None,
        "The column of the text: its name, or its number from 1 where the file has no header. By "
        "default guessed where it is plain.",
    )
    text_pair_column: str | None = option(
        None, "The column of the second text, where examples are pairs."
    )
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
    quotation: str = option(
        "auto",
        "Whether fields stand in quotation marks where they need to. In CSV they do; of TSV the "
        "file's beginning tells.",
        choices=("auto", "yes", "no"),
    )
    ignored_labels: tuple[str, ...] = option(
        (), "Rows with these labels are left out, such as - in SNLI."
    )
    regression: bool = option(False, "Labels are numbers to predict, not classes.")
    dev_share: float = option(
        0.0,
        "Without a dev file, the share of the training file that is scored instead of trained on "
        "(of each label alike; rows with the same texts and label stay together).",
        at_least=0,
        at_most=0.9,
    )
    dev_seed: int = option(
        0,
        "Which rows these are: a function of this number and their texts.",
        at_least=-(2**63),
        at_most=2**63 - 1,
    )
    class_weights: tuple[str, ...] = option(
        (),
        "How much labels count in the loss: balanced (as much as they are rare), or LABEL=WEIGHT "
        "separated by commas (1 for all others).",
    )
    prediction_format: str = option(
        "tsv", "The form of the tables of predictions.", choices=("tsv", "csv"), resume=FREE
    )
    num_mistakes: int = option(
        1000, "How many of the hardest mistakes are written.", at_least=1, resume=FREE
    )
    tfds_data_dir: Path | None = option(
        None,
        "The folder of TensorFlow Datasets; ~/tensorflow_datasets if not given.",
        resume=FREE,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.dev_file and self.dev_share:
            raise UserError(
                f"`dev_share={self.dev_share}` cuts a dev set off the training file, but "
                f"`dev_file={self.dev_file}` is given as well; give one of them."
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
    def is_given(self) -> bool:
        """Whether there is a file at all."""
        return bool(self.train_file or self.dev_file or self.test_file)

    @property
    def names_columns(self) -> bool:
        """Whether any column is named."""
        return any(self._named_columns())

    @property
    def has_header(self) -> bool:
        """Whether the first line of CSV and TSV names the columns."""
        if self.header is not None:
            return self.header
        return not any(name.isdecimal() for name in self._named_columns() if name)

    def _named_columns(self) -> list[str | None]:
        return [self.text_column, self.text_pair_column, *self.label_column]
