"""Cuts documents into chunks and chunks into A and B: the plan, without a single token.

The rules are those of google-research/bert, `create_pretraining_data.py`: sentences are collected
until a target length is reached; A takes a random number of them; B is the rest, or with
probability one half comes from another document, and then the unused sentences are put back.

All of this depends only on the lengths of a document's own sentences and on its own draws. So all
documents of a batch, in all copies, are planned in lockstep: one step takes the next chunk of every
document that still has sentences, with one NumPy call for all of them.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Purpose, Words, below, draw, example_keys, happens

Numbers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class DocumentBatch:
    """Neighbouring whole documents of the corpus, by the lengths of their sentences."""

    sentence_offsets: Numbers  # int64 [sentences + 1], tokens of the batch before each sentence
    document_bounds: Numbers  # int64 [documents + 1], sentences of the batch before each document
    first_sentence: int = 0  # as all three: its number in the corpus
    first_document: int = 0
    first_token: int = 0


def pair_starts(sentence_lengths: Numbers, document_sizes: Numbers, token_budget: int) -> int:
    """How many sentences a true next one can follow: a chunk of one sentence gets a random B.

    They are not the last of their document, and do not fill an example alone.

    Example:
        >>> pair_starts(np.array([5, 70, 5, 5, 9]), np.array([4, 1]), token_budget=61)
        2
    """
    starts = sentence_lengths < token_budget
    starts[np.cumsum(document_sizes) - 1] = False
    return int(np.count_nonzero(starts))


@dataclasses.dataclass(frozen=True)
class ChunkRules:
    """The settings that the plan of chunks depends on; without `pairs` there are no Bs."""

    token_budget: int
    short_seq_prob: float = 0.1
    pairs: bool = True


@dataclasses.dataclass
class Chunks:
    """Planned chunks; each array has one entry for each chunk."""

    keys: Words  # uint64, the example's key
    document: Numbers  # int64, number of its document in the corpus
    start_a: Numbers  # int64, first token of A in the corpus
    len_a: Numbers  # int64, tokens of A, not yet truncated
    len_b: Numbers  # int64, tokens of B, which follows A; 0 where B comes from elsewhere
    is_random: NDArray[np.bool_]  # bool, whether B comes from elsewhere
    target_b: Numbers  # int64, how many tokens a B from elsewhere should reach

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Numbers) -> "Chunks":
        """Some of the chunks."""
        return Chunks(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclasses.dataclass
class _ActiveDocuments:
    """The documents that still have sentences; one entry for each (copy, document)."""

    position: Numbers  # next sentence, counted in the batch
    end: Numbers  # end of the document
    target: Numbers  # target length in tokens
    document: Numbers  # number in the batch
    identity: Words  # identity of the batch's sentence 0 in this copy

    def keep(self, where: NDArray[np.bool_]) -> "_ActiveDocuments":
        return _ActiveDocuments(
            *(getattr(self, field.name)[where] for field in dataclasses.fields(self))
        )


def plan_chunks(
    batch: DocumentBatch,
    rules: ChunkRules,
    seed: np.uint64,
    copies: range,
    sentences_in_corpus: int,
) -> Chunks:
    """Plans all chunks of a batch's documents."""
    active = _first_sentences(batch, rules, seed, copies, sentences_in_corpus)
    offsets = batch.sentence_offsets
    steps: list[tuple[NDArray, ...]] = []
    while len(active.position):
        start = active.position
        # A chunk is known by its copy and first sentence: its draws do not depend on the batch.
        keys = example_keys(active.identity + start.astype(np.uint64), seed)
        end_a, end, is_random = _cut(offsets, active, keys, rules)
        steps.append((keys, active.document, start, end_a, end, is_random, active.target))
        # Where B comes from elsewhere, the sentences after A are put back for the next chunk.
        active.position = np.where(is_random, end_a, end)
        alive = active.position < active.end
        if not alive.all():
            active = active.keep(alive)
    chunks = _chunks(batch, steps)
    return chunks if rules.pairs else _in_parts(chunks, rules.token_budget, seed)


def _in_parts(chunks: Chunks, token_budget: int, seed: np.uint64) -> Chunks:
    """Cuts a chunk that is too long, so one sentence, evenly: truncated, it would lose the rest."""
    parts = -(-chunks.len_a // token_budget)
    rows, of = chunks.take(np.repeat(np.arange(len(chunks)), parts)), np.repeat(parts, parts)
    part = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    first, end = rows.len_a * part // of, rows.len_a * (part + 1) // of
    keys = np.where(part, example_keys(rows.keys + part.astype(np.uint64), seed), rows.keys)
    return dataclasses.replace(rows, keys=keys, start_a=rows.start_a + first, len_a=end - first)


def _first_sentences(
    batch: DocumentBatch,
    rules: ChunkRules,
    seed: np.uint64,
    copies: range,
    sentences_in_corpus: int,
) -> _ActiveDocuments:
    """Every document of every copy at its first sentence, with its target length drawn."""
    documents = len(batch.document_bounds) - 1
    position = np.tile(batch.document_bounds[:-1], len(copies))
    copy = np.repeat(np.arange(copies.start, copies.stop, dtype=np.uint64), documents)
    identity = copy * np.uint64(sentences_in_corpus) + np.uint64(batch.first_sentence)
    keys = example_keys(identity + position.astype(np.uint64), seed)
    short = happens(draw(keys, Purpose.SHORT), rules.short_seq_prob)
    short_target = 2 + below(draw(keys, Purpose.SHORT_LENGTH), max(1, rules.token_budget - 1))
    active = _ActiveDocuments(
        position=position,
        end=np.tile(batch.document_bounds[1:], len(copies)),
        target=np.where(short, np.minimum(short_target, rules.token_budget), rules.token_budget),
        document=np.tile(np.arange(documents, dtype=np.int64), len(copies)),
        identity=identity,
    )
    return active.keep(active.position < active.end)


def _cut(
    offsets: Numbers, active: _ActiveDocuments, keys: Words, rules: ChunkRules
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Where A ends, where the chunk ends (sentences), and whether B comes from elsewhere."""
    goal = offsets[active.position] + active.target
    if not rules.pairs:
        # Whole sentences while they fit; a first sentence that is too long makes chunks alone.
        fitting = np.searchsorted(offsets, goal, side="right") - 1
        end = np.minimum(np.maximum(fitting, active.position + 1), active.end)
        return end, end, np.zeros(len(end), bool)
    # As in the reference, the sentence that reaches the target still belongs to the chunk.
    end = np.minimum(np.searchsorted(offsets, goal), active.end)
    sentences = end - active.position
    choices = np.maximum(sentences - 1, 1).astype(np.uint64)
    end_a = active.position + 1 + below(draw(keys, Purpose.SPLIT), choices)
    is_random = (sentences == 1) | happens(draw(keys, Purpose.NEXT), 0.5)
    return end_a, end, is_random


def _chunks(batch: DocumentBatch, steps: list[tuple[NDArray, ...]]) -> Chunks:
    """Turns sentences into tokens, for all steps at once."""
    if not steps:
        empty = np.zeros(0, np.int64)
        return Chunks(
            empty.astype(np.uint64), empty, empty, empty, empty, empty.astype(bool), empty
        )
    keys, document, start, end_a, end, is_random, target = map(
        np.concatenate, zip(*steps, strict=True)
    )
    token = batch.sentence_offsets
    len_a = token[end_a] - token[start]
    return Chunks(
        keys=keys,
        document=document + batch.first_document,
        start_a=token[start] + batch.first_token,
        len_a=len_a,
        len_b=np.where(is_random, 0, token[end] - token[end_a]),
        is_random=is_random,
        target_b=np.maximum(target - len_a, 1),
    )
