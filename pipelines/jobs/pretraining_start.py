"""What pre-training starts from: the model's configuration, its vocabulary and its casing."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import read_config, read_tokenizer_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import Vocabulary


@dataclass(frozen=True)
class ModelText:
    """How the text behind the ids was made; it is written into the model directory.

    Attributes:
        vocabulary: the pieces that the ids mean.
        do_lower_case: whether text was lower-cased.
        strip_accents: whether accents were removed; None is "as `do_lower_case`".
    """

    vocabulary: Vocabulary
    do_lower_case: bool
    strip_accents: bool | None = None

    @property
    def casing(self) -> tuple[bool, bool | None]:
        """`do_lower_case` and `strip_accents`."""
        return self.do_lower_case, self.strip_accents


def read_model_config(bert_config_file: str | None, init_checkpoint: str | None) -> BertConfig:
    """Reads google's file, or the configuration of a model directory.

    Raises:
        UserError: neither is given.
    """
    if bert_config_file:
        return BertConfig.from_google_file(bert_config_file)
    if init_checkpoint and Path(init_checkpoint).is_dir():
        return read_config(init_checkpoint)
    raise UserError(
        "--bert_config_file is missing; give it, or an --init_checkpoint that is a model directory."
    )


def find_model_text(
    vocab_file: str | None,
    do_lower_case: bool | None,
    init_checkpoint: str | None,
    bert_config_file: str | None,
) -> ModelText:
    """Finds the vocabulary and the casing.

    A flag comes first, then the model directory that training starts from, then a `vocab.txt`
    beside the configuration (as google's archives have it).

    Raises:
        UserError: no vocabulary is found, or a flag contradicts the model directory.
    """
    strip_accents, found = None, vocab_file
    if init_checkpoint and Path(init_checkpoint).is_dir():
        own_vocabulary, own_casing, strip_accents = read_tokenizer_settings(init_checkpoint)
        if do_lower_case not in (None, own_casing):
            raise UserError(
                f"--do_lower_case={str(do_lower_case).lower()} contradicts {init_checkpoint}, "
                f"which was trained with {str(own_casing).lower()}; leave the flag out."
            )
        found, do_lower_case = found or str(own_vocabulary), own_casing
    if not found and bert_config_file:
        beside = Path(bert_config_file).parent / "vocab.txt"
        found = str(beside) if beside.is_file() else None
    if not found:
        raise UserError(
            "--vocab_file is missing; name the vocabulary that the shards were made with (it goes "
            "into the model directory)."
        )
    lower = True if do_lower_case is None else do_lower_case
    return ModelText(Vocabulary.load(found), lower, strip_accents)
