"""The recipe of pre-training shards: all that decides their content, and nothing else.

Where files lie, how many processes work and which runner is used are in `PretrainingDataConfig`
beside it: they change nothing in the records.
"""

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import Count, json_text
from keras_bert_impl.options import REQUIRED, Options, Rules, items_of, nested, option
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.encodings import TextEncoding
from pipelines.pretraining_data.chunks import ChunkRules
from pipelines.pretraining_data.masking import MaskingRules
from pipelines.pretraining_data.pairs import SpecialIds

_MOST_TOKENS = 1 << 24  # the largest vocabularies have a sixteenth of that


def check_shares(mask_probabilities: Sequence[float]) -> None:
    """Refuses what are no three shares of masked tokens."""
    shares = mask_probabilities
    if len(shares) != 3 or abs(sum(shares) - 1) >= 1e-6 or min(shares) < 0:
        raise UserError("`mask_probabilities` must be three shares from 0 to 1 with sum 1.")


@dataclasses.dataclass(frozen=True)
class Recipe(Options):
    """How documents become examples; names as in google-research/bert."""

    max_seq_length: int = option(128, "Length of an example in tokens.", at_least=5, at_most=65535)
    max_predictions_per_seq: int = option(
        20, "Most masked positions of an example.", at_least=1, at_most=65535
    )
    dupe_factor: int = option(
        10,
        "How often every document is used, each time with new draws.",
        at_least=1,
        at_most=100_000,
    )
    short_seq_prob: float = option(
        0.1,
        "Share of documents that are divided into examples of a random, shorter length.",
        at_least=0,
        at_most=1,
    )
    masked_lm_prob: float = option(0.15, "Share of the tokens to mask.", more_than=0, at_most=1)
    do_whole_word_mask: bool = option(False, "Mask all tokens of a word together.")
    random_seed: int = option(12345, "Fixes every draw.")
    masking: str = option(
        "static",
        "static masks once and for all; dynamic stores unmasked pairs that run_pretraining masks "
        "anew in each epoch; none stores unmasked pairs that are never masked.",
        choices=("static", "dynamic", "none"),
    )
    max_ngram: int = option(
        1,
        "Longest run of words masked together, 1 to 3; a run of n words is drawn with a share "
        "proportional to 1/n. Above 1, whole words are masked.",
        at_least=1,
        at_most=3,
    )
    mask_probabilities: tuple[float, float, float] = option(
        (0.8, 0.1, 0.1),
        "Shares of masked tokens that become [MASK], stay what they are, or become a random token.",
    )
    do_next_sentence: bool = option(
        True,
        "Make pairs for next-sentence prediction; otherwise full sentences are packed to the "
        "length, and those that are longer are cut into parts.",
    )
    random_replacements: str = option(
        "ordinary",
        "What a random token is drawn from: ordinary leaves out [PAD], [unused...] and the other "
        "special tokens; any is the whole vocabulary, as in the original.",
        choices=("ordinary", "any"),
    )
    same_document_tries: int = option(
        0,
        "0 always takes a random next sentence from another document. The original gives up after "
        "10 tries and then labels a sentence of the same document random: 10 does so too.",
        at_least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self.mask_probabilities)

    @property
    def token_budget(self) -> int:
        """Tokens that fit besides [CLS] and [SEP]."""
        return self.max_seq_length - (3 if self.do_next_sentence else 2)

    @property
    def stored_predictions(self) -> int | None:
        """Predictions in a record, or None where records are not masked."""
        return self.max_predictions_per_seq if self.masking == "static" else None

    def chunk_rules(self) -> ChunkRules:
        """The options of the plan of chunks."""
        return ChunkRules(self.token_budget, self.short_seq_prob, self.do_next_sentence)

    def masking_rules(self, facts: "VocabularyFacts") -> MaskingRules:
        """The options of masking."""
        return MaskingRules(
            max_predictions=self.max_predictions_per_seq,
            probability=self.masked_lm_prob,
            mask_id=facts.special.mask,
            continuation=facts.is_continuation,
            replacements=facts.replacements(self.random_replacements),
            whole_words=self.do_whole_word_mask,
            max_ngram=self.max_ngram,
            mask_share=self.mask_probabilities[0],
            same_share=self.mask_probabilities[1],
        )


@dataclasses.dataclass(frozen=True)
class PretrainingDataConfig(Options):
    """One run of `create_pretraining_data`."""

    input_file: str = option(
        REQUIRED, "Text files or quoted globs, separated by commas.", listed=True
    )
    output_file: str = option(
        REQUIRED,
        "Common name of the shards, e.g. data/train.tfrecord; -00000-of-00008 and so on is added. "
        "Or the files themselves, separated by commas: they are the shards.",
        listed=True,
    )
    vocab_file: str = option(REQUIRED, "WordPiece vocabulary, one token a line.")
    do_lower_case: bool = option(
        True, "Lower-case the text and strip accents, for an uncased vocabulary."
    )
    strip_accents: bool | None = option(
        None, "Strip accents; by default where the text is lower-cased."
    )
    recipe: Recipe = nested(Recipe)
    num_shards: int = option(
        0,
        "Number of shards; 0 takes one for about 65,000 examples, at most 1,024.",
        at_least=0,
        at_most=99_999,
    )
    num_workers: int = option(
        1,
        "Processes that work at the same time; 0 does all the work in the tool's own process.",
        at_least=0,
        at_most=1024,
    )
    runner: str = option(
        "local",
        "local (processes of this machine) or a Beam runner: DirectRunner, FlinkRunner, "
        "PortableRunner, DataflowRunner, ...",
    )
    text_encoding: TextEncoding = nested(TextEncoding)
    unknown: UnknownWords = nested(UnknownWords)
    beam_arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.text_encoding.keeps_lines:
            raise UserError(
                f"`encoding={self.text_encoding.encoding}`: text is cut into blocks at line ends, "
                "which cannot be found in this encoding without reading all; run split_sentences "
                "with it, which writes UTF-8."
            )
        names = self.output_names
        if not names or any(not name or name.endswith(("/", "\\")) for name in names):
            raise UserError(
                f"`output_file`: '{self.output_file}' must be the common name of all shards or the "
                "names of files, separated by commas."
            )
        folders = {re.split(r"[^\\/]*$", name)[0] for name in names}
        if len(folders) > 1 or len({*names}) < len(names):
            raise UserError(
                f"`output_file`: '{self.output_file}' must name different files of one folder."
            )
        if len(names) > 1 and self.num_shards not in (0, len(names)):
            raise UserError(
                f"`num_shards={self.num_shards}` contradicts the {len(names)} files that "
                "`output_file` names; leave it out."
            )

    @property
    def output_names(self) -> list[str]:
        """The paths that `output_file` names: all shards in common, or each of several."""
        return items_of(self.output_file)

    @property
    def set_name(self) -> str:
        """The name of the whole set: what its description is called after."""
        return self.output_names[0]

    @property
    def shards_asked(self) -> int:
        """How many shards are asked for; 0 where that is left to us."""
        names = len(self.output_names)
        return names if names > 1 else self.num_shards

    def text_settings(self, vocabulary: Vocabulary) -> TextSettings:
        """How text becomes ids, once the vocabulary is loaded."""
        return TextSettings(vocabulary, self.do_lower_case, self.strip_accents)


Runs = tuple[tuple[Count, Count], ...]
"""A set of ids as runs, [first, end) each."""


@dataclasses.dataclass(frozen=True)
class VocabularyFacts:
    """The part of a vocabulary that data work needs, as descriptions of shards hold it.

    `ordinary` tokens are all but the special and the `[unused...]` ones; `continuation` tokens
    continue a word.
    """

    size: Annotated[int, Rules(sentence="", at_least=1, at_most=_MOST_TOKENS)]
    sha256: str
    special: SpecialIds
    continuation: Runs
    ordinary: Runs

    def __post_init__(self) -> None:
        special = dataclasses.astuple(self.special)
        if not self.is_ordinary.any() or not all(0 <= one < self.size for one in special):
            raise UserError(f"its ids are not those of {self.size} tokens.")

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "VocabularyFacts":
        """Reads what is needed from a vocabulary."""
        tokens = vocabulary.tokens
        special = SpecialIds(
            vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id
        )
        is_ordinary = np.array([not token.startswith("[unused") for token in tokens])
        is_ordinary[[*dataclasses.astuple(special), vocabulary.unk_id]] = False
        is_ordinary[vocabulary.mask_id] = not is_ordinary.any()
        continues = np.array([token.startswith("##") for token in tokens])
        return cls(len(tokens), vocabulary.sha256, special, _runs(continues), _runs(is_ordinary))

    @cached_property
    def is_continuation(self) -> NDArray[np.bool_]:
        """Bool [size]: the tokens that continue a word."""
        return _members(self.continuation, self.size)

    @cached_property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """Bool [size]: all tokens but the special and the `[unused...]` ones."""
        return _members(self.ordinary, self.size)

    @property
    def dtype(self) -> type:
        """The smallest unsigned type that holds every id."""
        return np.uint16 if self.size <= 1 << 16 else np.uint32

    def replacements(self, which: str) -> np.ndarray:
        """The ids that a random replacement is drawn from."""
        chosen = np.flatnonzero(self.is_ordinary) if which == "ordinary" else np.arange(self.size)
        return chosen.astype(self.dtype)


def _runs(members: NDArray[np.bool_]) -> Runs:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], members, [False]]).astype(np.int8)))
    return tuple((first, end) for first, end in edges.reshape(-1, 2).tolist())


def _members(runs: Runs, size: int) -> NDArray[np.bool_]:
    members = np.zeros(size, bool)
    for first, end in runs:
        members[first:end] = True
    return members


def fingerprint(values: Any) -> str:
    """A short name for plain values: the start of the SHA-256 of their JSON."""
    return hashlib.sha256(json_text(values, sort_keys=True).encode()).hexdigest()[:16]
