"""The recipe of pre-training shards: all that decides their content, and nothing else.

Where files lie, how many processes work and which runner is used stand in `PretrainingDataConfig`
beside it: they change nothing in the records.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.chunks import ChunkRules
from pipelines.pretraining_data.examples import SpecialIds
from pipelines.pretraining_data.masking import MaskingRules

MASKINGS = ("static", "dynamic", "none")
REPLACEMENTS = ("ordinary", "any")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How documents become examples; names as in google-research/bert.

    Attributes:
        max_seq_length: length of an example in tokens.
        max_predictions_per_seq: most masked positions an example.
        dupe_factor: how often each document is used, with new draws.
        short_seq_prob: share of documents cut to a random, shorter target length.
        masked_lm_prob: share of tokens to mask.
        do_whole_word_mask: the tokens of a word are masked together.
        random_seed: any whole number.
        masking: "static" masks once and for all; "dynamic" leaves it to the input pipeline, anew in
            each epoch; "none" makes examples without masks.
        max_ngram: longest run of words masked together, 1 to 3.
        mask_probabilities: shares of [MASK], same token, random token.
        do_next_sentence: pairs with A and B; otherwise runs of full sentences.
        random_replacements: "ordinary" draws random tokens among all but [PAD], [unused...] and the
            other special tokens; "any" among the whole vocabulary, as the reference does.
        same_document_tries: 0 takes a random B always from another document; n > 0 gives up after n
            tries, as the reference does after 10.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    dupe_factor: int = 10
    short_seq_prob: float = 0.1
    masked_lm_prob: float = 0.15
    do_whole_word_mask: bool = False
    random_seed: int = 12345
    masking: str = "static"
    max_ngram: int = 1
    mask_probabilities: tuple[float, float, float] = (0.8, 0.1, 0.1)
    do_next_sentence: bool = True
    random_replacements: str = "ordinary"
    same_document_tries: int = 0

    def __post_init__(self) -> None:
        for sentence, holds in self._checks().items():
            if not holds:
                raise UserError(f"{sentence}; change the flag.")

    def _checks(self) -> dict[str, bool]:
        """What must hold, by the sentence that says so."""
        shares = self.mask_probabilities
        good_shares = len(shares) == 3 and abs(sum(shares) - 1) < 1e-6 and min(shares) >= 0
        good_predictions = 1 <= self.max_predictions_per_seq < 65536
        known = self.random_replacements in REPLACEMENTS
        return {
            "`max_seq_length` must be 5 to 65535": 5 <= self.max_seq_length < 65536,
            "`max_predictions_per_seq` must be 1 to 65535": good_predictions,
            "`dupe_factor` must be at least 1": self.dupe_factor >= 1,
            "`short_seq_prob` must be 0 to 1": 0 <= self.short_seq_prob <= 1,
            "`masked_lm_prob` must be above 0 and at most 1": 0 < self.masked_lm_prob <= 1,
            f"`masking` must be one of {', '.join(MASKINGS)}": self.masking in MASKINGS,
            "`max_ngram` must be 1, 2 or 3": self.max_ngram in (1, 2, 3),
            "`mask_probabilities` must be three shares from 0 to 1 with sum 1": good_shares,
            f"`random_replacements` must be one of {', '.join(REPLACEMENTS)}": known,
            "`same_document_tries` must be at least 0": self.same_document_tries >= 0,
        }

    @property
    def token_budget(self) -> int:
        """Tokens that fit beside [CLS] and [SEP]."""
        return self.max_seq_length - (3 if self.do_next_sentence else 2)

    @property
    def stored_predictions(self) -> int | None:
        """Predictions in a record, or None where records are not masked."""
        return self.max_predictions_per_seq if self.masking == "static" else None

    def chunk_rules(self) -> ChunkRules:
        """What the plan of chunks needs."""
        return ChunkRules(self.token_budget, self.short_seq_prob, self.do_next_sentence)

    def masking_rules(self, facts: "VocabularyFacts") -> MaskingRules:
        """What masking needs."""
        return MaskingRules(
            max_predictions=self.max_predictions_per_seq,
            probability=self.masked_lm_prob,
            mask_id=facts.special.mask,
            continuation=facts.continuation,
            replacements=facts.replacements(self.random_replacements),
            whole_words=self.do_whole_word_mask,
            max_ngram=self.max_ngram,
            mask_share=self.mask_probabilities[0],
            same_share=self.mask_probabilities[1],
        )

    def to_json(self) -> dict[str, Any]:
        """The recipe as plain values."""
        return {**dataclasses.asdict(self), "mask_probabilities": list(self.mask_probabilities)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        """The inverse of `to_json`.

        Example:
            >>> Recipe.from_json(Recipe(max_seq_length=64).to_json()).max_seq_length
            64
        """
        shares = tuple(values["mask_probabilities"])
        return cls(**{**values, "mask_probabilities": shares})


@dataclasses.dataclass(frozen=True)
class PretrainingDataConfig:
    """One run of `create_pretraining_data`.

    Attributes:
        input_file: documents: files or globs, separated by commas.
        output_file: the shards' common name; `-00000-of-00008` and so on is added to it. Or the
            shards' names, separated by commas; the first one also names the set.
        vocab_file: the vocabulary, one token a line.
        do_lower_case: lower-case the text (for an uncased vocabulary).
        strip_accents: remove accents; None follows `do_lower_case`.
        recipe: the rules.
        num_shards: number of shards; 0 chooses by the number of examples.
        num_workers: processes that work at the same time; 0 works in this process.
        work_folder: where tokens and plans are kept, for other recipes too; None keeps them beside
            the shards until the run is complete.
        invalid_utf8: "refuse" or "drop" ill-formed bytes.
        runner: "local", or the name of a Beam runner.
        beam_arguments: further options for Beam.
    """

    input_file: str
    output_file: str
    vocab_file: str
    do_lower_case: bool = True
    strip_accents: bool | None = None
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    num_shards: int = 0
    num_workers: int = 1
    work_folder: str | None = None
    invalid_utf8: str = "refuse"
    runner: str = "local"
    beam_arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.output_file.split(",")
        if any(not name or name.endswith(("/", "\\")) for name in names):
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
    def set_name(self) -> str:
        """The name of the whole set: what its description is called after."""
        return self.output_file.split(",")[0]

    @property
    def shards_asked(self) -> int:
        """How many shards are asked for; 0 where that is left to us."""
        names = self.output_file.count(",") + 1
        return names if names > 1 else self.num_shards

    def text_settings(self, vocabulary: Vocabulary) -> TextSettings:
        """How text becomes ids, once the vocabulary is loaded."""
        return TextSettings(vocabulary, self.do_lower_case, self.strip_accents)


@dataclasses.dataclass(frozen=True)
class VocabularyFacts:
    """What the data work needs to know of a vocabulary.

    Attributes:
        size: number of tokens.
        special: ids of the tokens that frame and hide tokens.
        continuation: bool [size], tokens that continue a word.
        ordinary: unsigned ids of all tokens but the special and the `[unused...]` ones.
        sha256: of the vocabulary.
    """

    size: int
    special: SpecialIds
    continuation: np.ndarray
    ordinary: np.ndarray
    sha256: str

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "VocabularyFacts":
        """Reads what is needed from a vocabulary."""
        tokens = vocabulary.pieces
        special = SpecialIds(
            vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id
        )
        framing = {*dataclasses.astuple(special), vocabulary.unk_id}
        ordinary = [
            number
            for number, token in enumerate(tokens)
            if number not in framing and not token.startswith("[unused")
        ]
        return cls(
            size=len(tokens),
            special=special,
            continuation=np.array([token.startswith("##") for token in tokens]),
            ordinary=np.array(ordinary or [vocabulary.mask_id], np.uint32),
            sha256=vocabulary.sha256,
        )

    @property
    def dtype(self) -> type:
        """The smallest unsigned type that holds every id."""
        return np.uint16 if self.size <= 1 << 16 else np.uint32

    def to_json(self) -> dict[str, Any]:
        """The facts as plain values; sets of ids as runs [first, end)."""
        return {
            "size": self.size,
            "sha256": self.sha256,
            "special": dataclasses.asdict(self.special),
            "continuation": _runs(self.continuation),
            "ordinary": _runs(np.isin(np.arange(self.size), self.ordinary)),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "VocabularyFacts":
        """The inverse of `to_json`."""
        size = values["size"]
        return cls(
            size=size,
            special=SpecialIds(**values["special"]),
            continuation=_members(values["continuation"], size),
            ordinary=np.flatnonzero(_members(values["ordinary"], size)).astype(np.uint32),
            sha256=values["sha256"],
        )

    def replacements(self, which: str) -> np.ndarray:
        """The ids that a random replacement is drawn from."""
        chosen = self.ordinary if which == "ordinary" else np.arange(self.size)
        return chosen.astype(self.dtype)


def _runs(members: np.ndarray) -> list[list[int]]:
    """The runs of True in a bool array, as [first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], members, [False]]).astype(np.int8)))
    return edges.reshape(-1, 2).tolist()


def _members(runs: Sequence[Sequence[int]], size: int) -> np.ndarray:
    """The inverse of `_runs`: bool [size]."""
    members = np.zeros(size, bool)
    for first, end in runs:
        members[first:end] = True
    return members


def parse_shares(words: Sequence[str]) -> tuple[float, float, float]:
    """Reads the value of `--mask_probabilities`.

    Raises:
        UserError: it is not three numbers.

    Example:
        >>> parse_shares(["0.8", "0.1", "0.1"])
        (0.8, 0.1, 0.1)
    """
    try:
        mask, same, random = (float(word) for word in words)
    except ValueError as error:
        raise UserError(
            f"`mask_probabilities`: '{','.join(words)}' is not three numbers; write 0.8,0.1,0.1."
        ) from error
    return mask, same, random


def fingerprint(values: Any) -> str:
    """A short name for plain values: the start of the SHA-256 of their JSON.

    Example:
        >>> fingerprint({"a": 1}) == fingerprint({"a": 1}), len(fingerprint([]))
        (True, 16)
    """
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
