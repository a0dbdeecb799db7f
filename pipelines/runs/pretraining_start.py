"""What pre-training starts from: the model's configuration, its vocabulary and its casing."""

from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import (
    check_casing,
    find_vocabulary,
    read_config,
    read_text_settings,
)
from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.records.check import find_shards
from pipelines.records.paths import with_local_copies


def read_model_config(
    bert_config_file: str | None,
    init_checkpoint: str | None = None,
    model_size: str | None = None,
    vocab_file: str | None = None,
) -> BertConfig:
    """Reads google's file or the configuration of a model directory, or makes one by its size.

    Args:
        bert_config_file: google's form of the configuration.
        init_checkpoint: where it is a model directory, its configuration is taken.
        model_size: a published size, in place of a configuration.
        vocab_file: the vocabulary, by whose pieces a model of `model_size` is made.

    Raises:
        UserError: nothing says what the model is like, or two things do.
    """
    if model_size:
        if bert_config_file or init_checkpoint:
            raise UserError(
                f"--model_size={model_size} is for a new model without --bert_config_file and "
                "--init_checkpoint; leave it out."
            )
        if not vocab_file:
            raise UserError("--model_size needs --vocab_file; name the vocabulary of the shards.")
        return named_config(model_size, len(Vocabulary.load(vocab_file)))
    if bert_config_file:
        return BertConfig.from_google_file(bert_config_file)
    if init_checkpoint and Path(init_checkpoint).is_dir():
        return read_config(init_checkpoint)
    raise UserError(
        "--bert_config_file is missing; give it, or --model_size, or an --init_checkpoint that is "
        "a model directory."
    )


def find_text_settings(
    vocab_file: str | None,
    do_lower_case: bool | None,
    init_checkpoint: str | None,
    bert_config_file: str | None,
    input_files: Sequence[str],
) -> TextSettings:
    """Finds the vocabulary and the casing.

    A flag comes first, then the model directory that training starts from. A vocabulary may also
    be the `vocab.txt` beside the configuration (as google's archives have it), and the casing is
    what the shards say of themselves.

    Raises:
        UserError: no vocabulary is found, or a flag contradicts the model directory.
    """
    start = init_checkpoint if init_checkpoint and Path(init_checkpoint).is_dir() else None
    lower, accents = _casing(do_lower_case, start, input_files)
    beside = Path(bert_config_file).parent / "vocab.txt" if bert_config_file else None
    if not vocab_file and start:
        vocab_file = str(find_vocabulary(start))
    elif not vocab_file and beside and beside.is_file():
        vocab_file = str(beside)
    if not vocab_file:
        raise UserError(
            "--vocab_file is missing; name the vocabulary that the shards were made with (it goes "
            "into the model directory)."
        )
    return TextSettings(Vocabulary.load(vocab_file), lower, accents)


def _casing(
    flag: bool | None, start: str | None, input_files: Sequence[str]
) -> tuple[bool, bool | None]:
    """`do_lower_case` and `strip_accents` of the model directory, else of the shards."""
    if start:
        own = read_text_settings(start)
        check_casing(flag, own.do_lower_case, start)
        return own.do_lower_case, own.strip_accents
    shards = find_shards(with_local_copies(input_files))
    described = next((shard.description for shard in shards if shard.description), None)
    if described and flag in (None, described.do_lower_case):
        return described.do_lower_case, described.strip_accents
    return (True if flag is None else flag), None
