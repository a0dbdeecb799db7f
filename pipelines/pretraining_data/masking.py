"""Which tokens a model predicts: masked ones (15 %, 80/10/10), or each from those on one side.

One mechanism serves all three: the candidates are *units* (a token, a word, a run of up to three
words), put in random order by sorting random numbers, and taken one after the other while they
still fit; a unit that would overflow the number of predictions is skipped.

The paper's left-to-right ablation (section 5.1) is trained as a standard language model on unmasked
pairs: at a position of the text, the token that comes next to it is predicted.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Purpose, Words, below, draw
from pipelines.pretraining_data.pairs import PaddedExamples, Tokens

Numbers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """How positions are chosen and replaced."""

    max_predictions: int  # most masked positions an example, e.g. 20
    probability: float  # share of the tokens (with [CLS] and [SEP]) to mask, e.g. 0.15
    mask_id: int  # id of [MASK]
    continuation: NDArray[np.bool_]  # bool [vocabulary], tokens that continue a word ("##ing")
    replacements: Tokens  # unsigned [n], the ids that a random replacement is drawn from
    whole_words: bool = False  # the tokens of a word are chosen together
    max_ngram: int = 1  # longest run of words chosen together, 1 to 3; above 1: whole words
    mask_share: float = 0.8  # of chosen tokens that become [MASK]
    same_share: float = 0.1  # and that stay; the rest becomes a random token


@dataclasses.dataclass
class Masked:
    """Chosen positions and their true ids, padded with zeros to the number of predictions."""

    positions: Numbers  # int64 [examples, predictions], ascending
    ids: Tokens  # unsigned [examples, predictions], the true tokens
    counts: Numbers  # int64 [examples], how many are real


def predictions_wanted(lengths: Numbers, rules: MaskingRules) -> Numbers:
    """How many positions to mask: the share of the length, at least 1, at most the maximum."""
    wanted = np.rint(lengths * rules.probability).astype(np.int64)
    return np.minimum(rules.max_predictions, np.maximum(1, wanted))


def mask_examples(examples: PaddedExamples, keys: Words, rules: MaskingRules) -> Masked:
    """Chooses positions, replaces the tokens there **in place** and gives back the true ones.

    Example:
        >>> rules = MaskingRules(2, 0.15, 4, np.zeros(99, bool), np.arange(5, 99), mask_share=1.0,
        ...                      same_share=0.0)
        >>> ids = np.array([[1, 50, 51, 2, 60, 2, 0]])
        >>> examples = PaddedExamples(ids, len_a=np.array([2]), len_b=np.array([1]))
        >>> masked = mask_examples(examples, np.array([7], np.uint64), rules)
        >>> masked.counts.tolist(), (examples.ids == 4).sum().item()
        ([1], 1)
    """
    chosen = choose_positions(examples, keys, rules)
    counts = np.count_nonzero(chosen, axis=1)
    row, position = np.nonzero(chosen)  # ordered by row, then by position
    true_ids = examples.ids[row, position]
    examples.ids[row, position] = replace(true_ids, keys[row], position, rules)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.zeros((len(keys), rules.max_predictions), np.int64)
    ids = np.zeros(positions.shape, examples.ids.dtype)
    positions[row, slot] = position
    ids[row, slot] = true_ids
    return Masked(positions, ids, counts)


def choose_positions(
    examples: PaddedExamples, keys: Words, rules: MaskingRules
) -> NDArray[np.bool_]:
    """Which positions to mask: bool [examples, length], never [CLS], [SEP] or padding."""
    candidates = ordinary_tokens(examples)
    wanted = predictions_wanted(examples.lengths(), rules)
    if not rules.whole_words and rules.max_ngram == 1:
        return _first_units(_random_order(candidates, keys), wanted, rules.max_predictions)
    starts = _word_starts(examples, candidates, rules.continuation)
    if rules.max_ngram > 1:
        starts = _join_words(starts, examples, keys, rules.max_ngram)
    count, length = candidates.shape
    unit = np.cumsum(starts, axis=1, dtype=np.int32) - 1  # [examples, length]
    flat = unit + (np.arange(count) * length)[:, None]
    sizes = np.bincount(flat[candidates], minlength=candidates.size).reshape(count, length)
    taken = _fitting_units(_random_order(sizes > 0, keys), sizes, wanted)
    return np.take_along_axis(taken, np.maximum(unit, 0), axis=1) & candidates


def replace(true_ids: Tokens, keys: Words, positions: Numbers, rules: MaskingRules) -> Tokens:
    """What is shown at masked positions [chosen]: [MASK], the token itself or a random token."""
    bits = draw(keys, Purpose.REPLACE, positions.astype(np.uint64))
    kind = bits >> np.uint64(32)
    word = below(bits << np.uint64(32), len(rules.replacements))
    to_mask = np.uint64(round(rules.mask_share * 2**32))
    to_keep = np.uint64(round((rules.mask_share + rules.same_share) * 2**32))
    result = rules.replacements[word].astype(true_ids.dtype)
    np.copyto(result, true_ids, where=kind < to_keep)
    np.copyto(result, rules.mask_id, where=kind < to_mask, casting="unsafe")
    return result


def ordinary_tokens(examples: PaddedExamples) -> NDArray[np.bool_]:
    """Bool [examples, length]: the tokens of A and B, not [CLS], [SEP] and padding."""
    column = np.arange(examples.ids.shape[1])
    inside = column < (examples.lengths() - 1)[:, None]
    inside[:, 0] = False
    inside[np.arange(len(inside)), examples.len_a + 1] = False
    return inside


def _random_order(present: NDArray[np.bool_], keys: Words) -> NDArray[np.uint32]:
    """[examples, length]: the units that are present in random order; then numbers >= length."""
    length = present.shape[1]
    # A random number in the high bits, the position in the low ones: one sort of plain integers
    # gives a random order, far faster than `argsort`. Positions that are absent sort to the end.
    bits = np.uint32(length.bit_length())
    index = np.arange((length + 1) // 2, dtype=np.uint64)
    words = draw(keys[:, None], Purpose.SELECT, index).astype("<u8", copy=False)
    packed = words.view("<u4")[:, :length] >> bits << bits  # two 32-bit numbers in each word
    packed |= np.arange(length, dtype=np.uint32)
    packed[~present] = 0xFFFFFFFF
    packed.sort(axis=1)
    return packed & np.uint32((1 << int(bits)) - 1)


def _first_units(
    order: NDArray[np.uint32], wanted: Numbers, max_predictions: int
) -> NDArray[np.bool_]:
    """Takes the first `wanted` units of size one: bool [examples, length], by unit."""
    taken = np.zeros(order.shape, bool)
    head = order[:, :max_predictions]
    valid = np.arange(head.shape[1]) < wanted[:, None]
    valid &= head < order.shape[1]
    row, rank = np.nonzero(valid)
    taken[row, head[row, rank]] = True
    return taken


def _fitting_units(order: NDArray[np.uint32], sizes: Numbers, wanted: Numbers) -> NDArray[np.bool_]:
    """Takes units in order but those that would overflow: bool [examples, length], by unit."""
    taken = np.zeros(order.shape, bool)
    left = wanted.copy()
    rows = np.arange(len(order))  # the examples that still have positions to mask
    for rank in range(order.shape[1]):
        unit = order[rows, rank]
        exists = unit < order.shape[1]
        if not exists.all():
            rows, unit = rows[exists], unit[exists]
        size = sizes[rows, unit]
        fits = size <= left[rows]
        taken[rows[fits], unit[fits]] = True
        left[rows[fits]] -= size[fits]
        rows = rows[left[rows] > 0]
        if not len(rows):
            break
    return taken


def _word_starts(
    examples: PaddedExamples, candidates: NDArray[np.bool_], continuation: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Where words begin; the first token of A and of B always begins one."""
    starts = candidates & ~continuation[examples.ids]
    starts[:, 1] |= candidates[:, 1]
    if examples.pairs:
        each, first_b = np.arange(len(starts)), examples.len_a + 2
        starts[each, first_b] = candidates[each, first_b]
    return starts


def _join_words(
    starts: NDArray[np.bool_], examples: PaddedExamples, keys: Words, max_ngram: int
) -> NDArray[np.bool_]:
    """Joins words to runs of 1 .. max_ngram, with shares proportional to 1 / length of the run."""
    shares = 1 / np.arange(1, max_ngram + 1)
    limits = (np.cumsum(shares / shares.sum())[:-1] * 2**32).astype(np.uint64)
    position = np.arange(starts.shape[1], dtype=np.uint64)
    bits = draw(keys[:, None], Purpose.NGRAM, position) >> np.uint64(32)
    more = (bits[:, :, None] >= limits).sum(axis=2, dtype=np.int8)  # further words of a run
    joined = np.zeros_like(starts)
    left = np.zeros(len(starts), np.int8)
    for column in range(starts.shape[1]):
        start = starts[:, column]
        # A run does not go on from A into B.
        fresh = start & ((left <= 0) | (examples.len_a + 2 == column))
        left = np.where(fresh, more[:, column], left - start)
        joined[:, column] = fresh
    return joined


MASKED_LM, NEXT_TOKEN, PREVIOUS_TOKEN = "masked_lm", "next_token", "previous_token"
OBJECTIVES = (MASKED_LM, NEXT_TOKEN, PREVIOUS_TOKEN)


@dataclasses.dataclass(frozen=True)
class Targets:
    """The prediction targets of a run; objectives other than masked_lm take unmasked records.

    Without `mask_probabilities` dynamic masks are those of the shards' recipe.
    """

    objective: str = MASKED_LM
    mask_probabilities: tuple[float, float, float] | None = None


def most_predictions(max_seq_length: int) -> int:
    """Predictions of a full record: all its tokens but [CLS] and one [SEP]."""
    return max_seq_length - 2


def predict_neighbours(examples: PaddedExamples, objective: str) -> Masked:
    """Every token of the text as the prediction at the position in front of it, or after it.

    [CLS], [SEP] and padding are never predicted, as they are never masked.

    Example:
        >>> ids = np.array([[1, 50, 51, 2, 60, 2, 0]])
        >>> examples = PaddedExamples(ids, len_a=np.array([2]), len_b=np.array([1]))
        >>> found = predict_neighbours(examples, NEXT_TOKEN)
        >>> found.positions.tolist(), found.ids.tolist()
        ([[0, 1, 3, 0, 0]], [[50, 51, 60, 0, 0]])
    """
    chosen = ordinary_tokens(examples)  # [examples, length]
    counts = np.count_nonzero(chosen, axis=1)
    row, position = np.nonzero(chosen)  # ordered by row, then by position
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(counts), most_predictions(examples.ids.shape[1]))
    positions, ids = np.zeros(shape, np.int64), np.zeros(shape, examples.ids.dtype)
    positions[row, slot] = position + (-1 if objective == NEXT_TOKEN else 1)
    ids[row, slot] = examples.ids[row, position]
    return Masked(positions, ids, counts)
