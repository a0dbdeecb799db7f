"""Turns planned chunks into pairs: finds random Bs, truncates both sides, gathers the tokens.

A chunk whose B comes from elsewhere asks for a document and a start sentence in it. Both follow
from the chunk's key alone, so the answer can be looked up in memory-mapped offsets on one machine
or joined by document number on a cluster.

The reference truncates a pair one token at a time: it drops a token of the longer side (of B where
both are equally long), from its front or its back with probability one half. How many tokens each
side loses follows from the two lengths alone; how many of them go from the front is binomial: the
number of ones among as many random bits.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.packing import truncated_lengths
from pipelines.pretraining_data.chunks import Chunks
from pipelines.pretraining_data.draws import Purpose, Words, below, draw

Numbers = NDArray[np.int64]
Tokens = NDArray[np.unsignedinteger]


@dataclasses.dataclass(frozen=True)
class SpecialIds:
    """The ids of the tokens that frame and hide tokens."""

    pad: int
    cls: int
    sep: int
    mask: int


@dataclasses.dataclass
class PlannedExamples:
    """Examples as positions in the corpus: 29 bytes each instead of their tokens."""

    keys: Words  # uint64 [examples]; also the order of the examples in the shards
    start_a: Numbers  # int64 [examples], first token of A, as of B
    start_b: Numbers
    len_a: NDArray[np.uint16]  # uint16 [examples], tokens after truncation
    len_b: NDArray[np.uint16]  # 0 where there is no B
    is_random: NDArray[np.bool_]  # bool [examples], the next-sentence label

    def __len__(self) -> int:
        return len(self.keys)

    def columns(self) -> dict[str, NDArray]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def take(self, rows: Numbers | slice) -> "PlannedExamples":
        """Some of the examples."""
        return PlannedExamples(**{name: column[rows] for name, column in self.columns().items()})

    def ordered(self) -> "PlannedExamples":
        """The examples by ascending key: as keys are random, this shuffles the whole set."""
        return self.take(np.argsort(self.keys))


@dataclasses.dataclass
class PaddedExamples:
    """Examples of a fixed length."""

    ids: Tokens  # unsigned [examples, length], padded
    len_a: Numbers  # int64 [examples], tokens of A, as of B
    len_b: Numbers
    pairs: bool = True  # False where the examples have no B and no second [SEP]

    def lengths(self) -> Numbers:
        """int64 [examples]: tokens with [CLS] and [SEP], without padding."""
        return self.len_a + self.len_b + (3 if self.pairs else 2)


def gather_examples(
    tokens: Tokens, plan: PlannedExamples, length: int, special: SpecialIds, *, pairs: bool = True
) -> PaddedExamples:
    """Copies the tokens of planned examples into padded ones.

    Example:
        >>> tokens = np.arange(10, 20, dtype=np.uint16)
        >>> plan = PlannedExamples(*(np.array([number]) for number in (7, 0, 5, 2, 3, 0)))
        >>> gather_examples(tokens, plan, 10, SpecialIds(0, 1, 2, 3)).ids.tolist()
        [[1, 10, 11, 2, 15, 16, 17, 2, 0, 0]]
    """
    len_a, len_b = plan.len_a.astype(np.int64), plan.len_b.astype(np.int64)
    column = np.arange(length)
    after_a = (len_a + 1)[:, None]  # [examples, 1]: position of the first [SEP]
    # The source of each position, as if B followed A with one position for [SEP] between.
    source = (plan.start_a - 1)[:, None] + column  # [examples, length]
    if pairs:
        step = (plan.start_b - plan.start_a - len_a - 1)[:, None]
        np.add(source, step, out=source, where=column > after_a)
    # Padding and special positions may point outside the array: they are overwritten below.
    ids = tokens.take(source, mode="clip")
    examples = PaddedExamples(ids, len_a, len_b, pairs)
    ids[:, 0] = special.cls
    each = np.arange(len(ids))
    ids[each, len_a + 1] = special.sep
    lengths = examples.lengths()
    ids[each, lengths - 1] = special.sep
    np.copyto(ids, special.pad, where=column >= lengths[:, None], casting="unsafe")
    return examples


_WORDS_AT_ONCE = 16


def dropped_from_front(lost: Numbers, keys: Words, purpose: Purpose) -> Numbers:
    """How many of the lost tokens of each pair go from the front: Binomial(lost, 1/2)."""
    front = np.zeros(lost.shape, np.int64)
    waiting = np.flatnonzero(lost > 0)
    word = 0
    while len(waiting) and word < _WORDS_AT_ONCE:
        bits = draw(keys[waiting], purpose, word)
        left = lost[waiting] - 64 * word
        spare = np.clip(64 - left, 0, 63).astype(np.uint64)
        front[waiting] += np.bitwise_count(bits >> spare).astype(np.int64)
        waiting = waiting[left > 64]
        word += 1
    for row in waiting.tolist():  # sides that lose over a thousand tokens are rare
        front[row] += _ones_in_stream(int(lost[row]), keys[row], purpose, word)
    return front


def _ones_in_stream(lost: int, key: np.uint64, purpose: Purpose, first_word: int) -> int:
    """Ones among the bits `64 * first_word .. lost` of one example's stream."""
    words = -(-lost // 64)
    ones = 0
    for start in range(first_word, words, 1 << 16):
        index = np.arange(start, min(words, start + (1 << 16)), dtype=np.uint64)
        bits = draw(np.full(len(index), key), purpose, index)
        if start + len(index) == words:
            bits[-1] >>= np.uint64(64 * words - lost)
        ones += int(np.bitwise_count(bits).sum())
    return ones


def partner_documents(keys: Words, own: Numbers, documents: int, same_tries: int = 0) -> Numbers:
    """The document that each random B comes from; `own` is A's."""
    if same_tries == 0:
        chosen = below(draw(keys, Purpose.PARTNER_DOCUMENT), documents - 1)
        return chosen + (chosen >= own)
    chosen = own.copy()
    for attempt in range(same_tries):
        same = np.flatnonzero(chosen == own)
        chosen[same] = below(draw(keys[same], Purpose.PARTNER_DOCUMENT, attempt), documents)
    return chosen


def partner_spans(
    keys: Words,
    target_b: Numbers,
    sentence_offsets: Numbers,
    document_start: Numbers,
    document_end: Numbers,
) -> tuple[Numbers, Numbers]:
    """The tokens that a random B takes: from a uniform sentence on until the target is reached."""
    sentences = (document_end - document_start).astype(np.uint64)
    first = document_start + below(draw(keys, Purpose.PARTNER_SENTENCE), sentences)
    start = sentence_offsets[first]
    end = np.minimum(np.searchsorted(sentence_offsets, start + target_b), document_end)
    return start, sentence_offsets[end] - start


def find_partners(
    chunks: Chunks, sentence_offsets: Numbers, document_bounds: Numbers, same_tries: int
) -> tuple[Numbers, Numbers]:
    """Where B begins, for all chunks: right after A, or where a random partner was found."""
    start_b, len_b = chunks.start_a + chunks.len_a, chunks.len_b.copy()
    asking = np.flatnonzero(chunks.is_random)
    keys = chunks.keys[asking]
    document = partner_documents(
        keys, chunks.document[asking], len(document_bounds) - 1, same_tries
    )
    start_b[asking], len_b[asking] = partner_spans(
        keys,
        chunks.target_b[asking],
        sentence_offsets,
        document_bounds[document],
        document_bounds[document + 1],
    )
    return start_b, len_b


def truncate(
    chunks: Chunks, start_b: Numbers, len_b: Numbers, token_budget: int
) -> PlannedExamples:
    """Cuts A and B so that they fit."""
    kept_a, kept_b = truncated_lengths(chunks.len_a, len_b, token_budget)
    front_a = dropped_from_front(chunks.len_a - kept_a, chunks.keys, Purpose.TRUNCATE_A)
    front_b = dropped_from_front(len_b - kept_b, chunks.keys, Purpose.TRUNCATE_B)
    return PlannedExamples(
        keys=chunks.keys,
        start_a=chunks.start_a + front_a,
        start_b=start_b + front_b,
        len_a=kept_a.astype(np.uint16),
        len_b=kept_b.astype(np.uint16),
        is_random=chunks.is_random,
    )
