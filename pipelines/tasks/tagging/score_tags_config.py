"""Which tagged files are scored, and with which others they are compared."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.options import REQUIRED, check_options, option
from pipelines.tasks.tagging.tagging_config import AUTO


@dataclass(frozen=True, kw_only=True)
class ScoreTagsConfig:
    """Which tagged files are scored, and with which others they are compared.

    Raises:
        UserError: a value out of range.
    """

    predictions_file: tuple[Path, ...] = option(
        REQUIRED,
        "Files with a word, its tag and last the predicted tag on each line; several are runs "
        "whose figures are averaged, such as those of other seeds.",
    )
    compared_with: tuple[Path, ...] = option(
        (), "Predictions for the same text by another way; the difference gets an interval."
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

    def __post_init__(self) -> None:
        check_options(self)
