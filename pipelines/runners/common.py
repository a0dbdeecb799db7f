"""Parts that the local and the Beam runner share: checks, the number of shards, descriptions."""

import logging
from typing import IO, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import items_of
from pipelines.corpora.sentences import are_cut
from pipelines.corpora.sources import kind_of, other_kind
from pipelines.corpora.unpacking import SAMPLE_BYTES
from pipelines.pretraining_data.recipe import PretrainingDataConfig, VocabularyFacts
from pipelines.records.description import Description, ShardEntry, versions_in_use

_LOGGER = logging.getLogger(__name__)

_EXAMPLES_PER_SHARD = 65_536
_MOST_SHARDS = 1024
_MAKE_SENTENCES = (
    "take the text out of it first; split_sentences makes sentences of plain text, of JSON lines "
    "and of WikiExtractor's output"
)
_FEW_STARTS = 0.2  # a lower share of lines with a true next one makes 90 % random pairs or more


def check_partners(
    config: PretrainingDataConfig, documents: int, sentences: int, starts: int
) -> None:
    """Refuses a corpus without sentences, or where no true or no random next one can be found."""
    recipe = config.recipe
    if documents == 0:
        raise UserError(
            f"{config.input_file}: has no sentence with a token; write one sentence a line and an "
            "empty line between documents."
        )
    if documents == 1 and recipe.do_next_sentence and not recipe.same_document_tries:
        raise UserError(
            f"{config.input_file}: holds one document, so no random next sentence can be taken "
            "from another; separate documents by empty lines, pass `do_next_sentence=False`, or "
            "`same_document_tries=10` to label sentences of the same document random."
        )
    if recipe.do_next_sentence and starts < _FEW_STARTS * sentences:
        message = (
            f"{config.input_file}: {starts:,} of {sentences:,} lines can be followed by their true "
            "next one (the others are the last of their document, or fill an example of "
            f"`max_seq_length={recipe.max_seq_length}` alone), so that {'nearly ' * (starts > 0)}"
            "all next sentences are random; make sentences of the text with split_sentences, or "
            "pass `do_next_sentence=False`, and nonext_sentence to run_pretraining."
        )
        if not starts:
            raise UserError(message)
        _LOGGER.warning("%s", message)


def look_at_input(path: str, file: IO[bytes], told: set[str]) -> None:
    """Looks at what is read as sentences: refuses JSON, warns of what is probably no sentences."""
    file.seek(0)
    start = file.read(SAMPLE_BYTES)
    if are_cut(start.decode("utf-8", "ignore").split("\n")):
        _LOGGER.warning(
            "%s: lines seem to be cut at one width, so that they are parts of sentences; make "
            "sentences of the text with split_sentences, which joins them.",
            path,
        )
    if kind_of(start.decode("utf-8", "ignore")) == "JSON":
        raise UserError(
            f"{path}: holds JSON, but sentences are needed, one a line; make them with "
            "split_sentences, which reads JSON lines (`text_field` names the field), and give "
            "its output."
        )
    other_kind(path, start, _MAKE_SENTENCES, told)


def split_names(patterns: str) -> list[str]:
    """The names and globs of `input_file`, read as `items_of` does."""
    names = [name for name in items_of(patterns) if name]
    if not names:
        raise UserError("`input_file` names no file; name at least one.")
    return names


def choose_shards(examples: int, asked: int) -> int:
    """The number of shards: as asked, or one for about 65 thousand examples, at most 1024.

    Example:
        >>> choose_shards(200_000, 0), choose_shards(10, 0), choose_shards(10, 3)
        (4, 1, 3)
    """
    return asked or min(_MOST_SHARDS, -(-examples // _EXAMPLES_PER_SHARD)) or 1


def describe(
    config: PretrainingDataConfig,
    facts: VocabularyFacts,
    source: dict[str, Any],
    entries: list[ShardEntry],
) -> Description:
    """The description of a finished set."""
    return Description(
        recipe=config.recipe,
        vocabulary=facts,
        do_lower_case=config.do_lower_case,
        strip_accents=config.strip_accents,
        source=source,
        shards=tuple(entries),
        versions=versions_in_use(),
        unicode_form=config.text_encoding.unicode_form,
    )
