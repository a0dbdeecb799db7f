"""What a fine-tuning job starts from: configuration, vocabulary and casing, wherever they stand."""

import os
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import (
    check_casing,
    find_vocabulary,
    read_config,
    read_text_settings,
)
from keras_bert_impl.checkpoints.restore import check_sizes, open_source
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary


@dataclass(frozen=True)
class StartingPoint:
    """A model's shape and how its text is tokenized, before it has weights.

    Attributes:
        checkpoint: a model directory or the prefix of a TF1 checkpoint; None for new weights.
        config: the model's configuration.
        text: the vocabulary, the casing and the accents.
    """

    checkpoint: str | None
    config: BertConfig
    text: TextSettings

    def tokenizer(self) -> Tokenizer:
        """Gives the tokenizer that belongs to the model."""
        return Tokenizer(self.text)

    def check_length(self, max_seq_length: int) -> None:
        """Refuses inputs that are longer than the model's positions, or shorter than a pair.

        Raises:
            UserError: `max_seq_length` is out of range.
        """
        self.config.check_length(max_seq_length)
        if max_seq_length < 5:
            raise UserError(
                f"--max_seq_length={max_seq_length} leaves no room for text; give 5 or more."
            )


def find_starting_point(
    checkpoint: str | os.PathLike[str] | None,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
) -> StartingPoint:
    """Takes what is given, and the rest from the model directory.

    Args:
        checkpoint: a model directory, the prefix of a TF1 checkpoint, or None.
        bert_config_file: google's form of the configuration; needed unless there is a directory.
        vocab_file: the vocabulary; needed unless there is a directory.
        do_lower_case: the casing; without directory and flag, text is lower-cased.

    Raises:
        UserError: something is missing, a flag or the configuration contradicts the model
            directory, or the casing the vocabulary.
    """
    directory = Path(checkpoint) if checkpoint and Path(checkpoint).is_dir() else None
    strip_accents = None
    if directory:
        vocab_file = vocab_file or str(find_vocabulary(directory))
        own = read_text_settings(directory, vocab_file)
        check_casing(do_lower_case, own.do_lower_case, directory)
        do_lower_case, strip_accents = own.do_lower_case, own.strip_accents
    for name, value in (("bert_config_file", bert_config_file), ("vocab_file", vocab_file)):
        if value is None and directory is None:
            raise UserError(
                f"--{name} is missing; give it, or an --init_checkpoint that is a model directory."
            )
    if bert_config_file:
        config = BertConfig.from_google_file(bert_config_file)
    else:
        config = read_config(str(directory))
    if directory:
        # Before a model is made: a configuration may ask for more memory than there is.
        check_sizes(open_source(directory), config)
    vocabulary = Vocabulary.load(str(vocab_file))
    if len(vocabulary) > config.vocab_size:
        raise UserError(
            f"{vocab_file}: has {len(vocabulary)} pieces, but the model only knows "
            f"{config.vocab_size}; name the vocabulary that the model was made with."
        )
    do_lower_case = True if do_lower_case is None else do_lower_case
    # Accents are not counted: whether they are kept no flag says, and no file of the original.
    contradiction = TextSettings(vocabulary, do_lower_case, strip_accents=False).contradiction()
    if contradiction and not directory:
        flag = "--nodo_lower_case" if do_lower_case else "--do_lower_case"
        raise UserError(f"{vocab_file}: {contradiction} Then give {flag}.")
    return StartingPoint(
        checkpoint=str(checkpoint) if checkpoint else None,
        config=config,
        text=TextSettings(vocabulary, do_lower_case, strip_accents),
    )
