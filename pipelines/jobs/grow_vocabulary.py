"""Adding words to a checkpoint of any format."""

import dataclasses
from collections.abc import Sequence

from keras_bert_impl.checkpoints.vocabulary_growth import NewPiece, grow_vocabulary
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input
from pipelines.jobs.convert_checkpoint import ConvertConfig, read_input, write_output


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowConfig(ConvertConfig):
    """Which words to add to which checkpoint; what is read and written as in `ConvertConfig`.

    Attributes:
        words: the new words.
        words_file: a UTF-8 file with more new words, one a line.
        fill_unused: use `[unused…]` entries up before the tables are enlarged.
    """

    words: Sequence[str] = ()
    words_file: str | None = None
    fill_unused: bool = True


def grow_checkpoint(config: GrowConfig) -> list[NewPiece]:
    """Adds the words and writes the grown checkpoint.

    Returns:
        The new pieces with their ids and what their rows start as.

    Raises:
        UserError: the input is not whole, or a word cannot be added or could never be used.
    """
    model = read_input(config)
    words = [*config.words, *_read_words(config.words_file)]
    grown, new = grow_vocabulary(model, words, config.fill_unused)
    _check_reachable(grown.vocabulary, words, model.do_lower_case, model.strip_accents)
    write_output(grown, config)
    return new


def _read_words(path: str | None) -> list[str]:
    if path is None:
        return []
    with open_input(path) as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: is not UTF-8; convert it.") from error
    return [line.strip() for line in lines if line.strip()]


def _check_reachable(
    vocabulary: object, words: Sequence[str], do_lower_case: bool, strip_accents: bool | None
) -> None:
    """Sees that the tokenizer gives each new word as the one piece that it now is."""
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

    tokenizer = Tokenizer(vocabulary, do_lower_case, strip_accents)  # type: ignore[arg-type]
    for word in words:
        whole = word.startswith("##") or tokenizer.tokenize(word) == [word]
        if not whole:
            cut = " ".join(tokenizer.tokenize(word))
            raise UserError(
                f"new word {word!r}: the tokenizer would never give it (it cuts it into '{cut}'); "
                "give words without spaces and punctuation, in lower case for an uncased model."
            )
