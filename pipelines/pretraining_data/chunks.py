"""How documents are cut into chunks and chunks into A and B: the plan, without a single token.

A document's chunks depend only on the lengths of its own sentences and on its own draws: where a
chunk ends, where A ends, whether B comes from elsewhere and how many tokens it may then take, and
which sentences are put back. So all documents of a slab, in all copies, are planned in lockstep:
one step takes the next chunk of every document that still has sentences.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Purpose, Words, below, draw, example_keys, happens

Numbers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Slab:
    """Neighbouring whole documents of the corpus, by the lengths of their sentences.

    Attributes:
        sentence_offsets: int64 [sentences + 1], tokens before each sentence, from the slab's first
            token on; starts with 0.
        document_bounds: int64 [documents + 1], sentences before each document, from the slab's
            first sentence on; starts with 0.
        first_sentence: number of the slab's first sentence in the corpus.
        first_document: number of its first document.
        first_token: number of its first token.
    """

    sentence_offsets: Numbers
    document_bounds: Numbers
    first_sentence: int = 0
    first_document: int = 0
    first_token: int = 0


@dataclasses.dataclass(frozen=True)
class ChunkRules:
    """What the plan of chunks depends on, apart from the corpus.

    Attributes:
        room: tokens that fit beside [CLS] and [SEP].
        short_seq_prob: how often a document is cut to a random, shorter target length.
        pairs: A and B (True), or one run of full sentences (False).
    """

    room: int
    short_seq_prob: float = 0.1
    pairs: bool = True


@dataclasses.dataclass
class Chunks:
    """Planned chunks; one entry of each array a chunk.

    Attributes:
        keys: uint64, the example's key.
        document: int64, number of its document in the corpus.
        start_a: int64, first token of A in the corpus.
        len_a: int64, tokens of A, not yet truncated.
        len_b: int64, tokens of B, which follows A; 0 where B comes from elsewhere.
        is_random: bool, B comes from elsewhere.
        target_b: int64, how many tokens a B from elsewhere should reach.
    """

    keys: Words
    document: Numbers
    start_a: Numbers
    len_a: Numbers
    len_b: Numbers
    is_random: NDArray[np.bool_]
    target_b: Numbers

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Numbers) -> "Chunks":
        """Some of the chunks."""
        return Chunks(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclasses.dataclass
class _Lanes:
    """The documents in work; one entry a (copy, document)."""

    position: Numbers  # next sentence, counted in the slab
    end: Numbers  # end of the document
    target: Numbers  # target length in tokens
    document: Numbers  # number in the slab
    identity: Words  # identity of the slab's sentence 0 in this copy

    def keep(self, where: NDArray[np.bool_]) -> "_Lanes":
        return _Lanes(*(getattr(self, field.name)[where] for field in dataclasses.fields(self)))


def plan_chunks(
    slab: Slab, rules: ChunkRules, seed: np.uint64, copies: range, sentences_in_corpus: int
) -> Chunks:
    """Plans all chunks of a slab's documents.

    Args:
        slab: the documents.
        rules: lengths and shares.
        seed: what `seed_word` gave.
        copies: which repetitions of the documents to plan.
        sentences_in_corpus: all sentences; makes the identities unique.

    Returns:
        The chunks, in an order that carries no meaning.

    Example:
        >>> from pipelines.pretraining_data.draws import seed_word
        >>> slab = Slab(np.array([0, 5, 9, 14, 20]), np.array([0, 4]))
        >>> rules = ChunkRules(room=61, short_seq_prob=0.0)
        >>> chunks = plan_chunks(slab, rules, seed_word(3), range(1), 4)
        >>> chunks.start_a[0].item()
        0
        >>> bool((chunks.len_a >= 1).all())
        True
    """
    lanes = _first_lanes(slab, rules, seed, copies, sentences_in_corpus)
    offsets = slab.sentence_offsets
    steps: list[tuple[NDArray, ...]] = []
    while len(lanes.position):
        start = lanes.position
        keys = example_keys(lanes.identity + start.astype(np.uint64), seed)
        end_a, end, is_random = _cut(offsets, lanes, keys, rules)
        steps.append((keys, lanes.document, start, end_a, end, is_random, lanes.target))
        lanes.position = np.where(is_random, end_a, end)
        alive = lanes.position < lanes.end
        if not alive.all():
            lanes = lanes.keep(alive)
    return _chunks(slab, steps)


def _first_lanes(
    slab: Slab, rules: ChunkRules, seed: np.uint64, copies: range, sentences_in_corpus: int
) -> _Lanes:
    """Every document of every copy at its first sentence, with its target length drawn."""
    documents = len(slab.document_bounds) - 1
    position = np.tile(slab.document_bounds[:-1], len(copies))
    copy = np.repeat(np.arange(copies.start, copies.stop, dtype=np.uint64), documents)
    identity = copy * np.uint64(sentences_in_corpus) + np.uint64(slab.first_sentence)
    keys = example_keys(identity + position.astype(np.uint64), seed)
    short = happens(draw(keys, Purpose.SHORT), rules.short_seq_prob)
    short_target = 2 + below(draw(keys, Purpose.SHORT_LENGTH), max(1, rules.room - 1))
    lanes = _Lanes(
        position=position,
        end=np.tile(slab.document_bounds[1:], len(copies)),
        target=np.where(short, np.minimum(short_target, rules.room), rules.room),
        document=np.tile(np.arange(documents, dtype=np.int64), len(copies)),
        identity=identity,
    )
    return lanes.keep(lanes.position < lanes.end)


def _cut(
    offsets: Numbers, lanes: _Lanes, keys: Words, rules: ChunkRules
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Where A ends, where the chunk ends (sentences), and whether B comes from elsewhere."""
    goal = offsets[lanes.position] + lanes.target
    if not rules.pairs:
        # Whole sentences while they fit; a first sentence that is too long stands alone.
        fitting = np.searchsorted(offsets, goal, side="right") - 1
        end = np.minimum(np.maximum(fitting, lanes.position + 1), lanes.end)
        return end, end, np.zeros(len(end), bool)
    end = np.minimum(np.searchsorted(offsets, goal), lanes.end)
    sentences = end - lanes.position
    choices = np.maximum(sentences - 1, 1).astype(np.uint64)
    end_a = lanes.position + 1 + below(draw(keys, Purpose.SPLIT), choices)
    is_random = (sentences == 1) | happens(draw(keys, Purpose.NEXT), 0.5)
    return end_a, end, is_random


def _chunks(slab: Slab, steps: list[tuple[NDArray, ...]]) -> Chunks:
    """Turns sentences into tokens, for all steps at once."""
    if not steps:
        empty = np.zeros(0, np.int64)
        return Chunks(
            empty.astype(np.uint64), empty, empty, empty, empty, empty.astype(bool), empty
        )
    keys, document, start, end_a, end, is_random, target = map(
        np.concatenate, zip(*steps, strict=True)
    )
    token = slab.sentence_offsets
    len_a = token[end_a] - token[start]
    return Chunks(
        keys=keys,
        document=document + slab.first_document,
        start_a=token[start] + slab.first_token,
        len_a=len_a,
        len_b=np.where(is_random, 0, token[end] - token[end_a]),
        is_random=is_random,
        target_b=np.maximum(target - len_a, 1),
    )
