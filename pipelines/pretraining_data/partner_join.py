"""Messages between workers: finished examples, and requests for a random next sentence.

On a cluster no worker can look up a sentence of another block. So a chunk whose B comes from
elsewhere is sent, with the tokens of its A, to the worker that has the block of its partner, and
the pair is finished there. One join by block number answers all requests.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.chunks import Chunks, DocumentBatch, plan_chunks
from pipelines.pretraining_data.documents import SentenceBlock
from pipelines.pretraining_data.draws import Words, seed_word
from pipelines.pretraining_data.pairs import (
    PlannedExamples,
    Tokens,
    partner_documents,
    partner_spans,
    truncate,
)
from pipelines.pretraining_data.recipe import Recipe

Numbers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class BlockBases:
    """Sentences and documents before each block of a corpus, and in all: int64 [blocks + 1]."""

    sentences: Numbers
    documents: Numbers

    @classmethod
    def of(cls, sizes: Sequence[tuple[int, int, int]]) -> "BlockBases":
        """Adds up (block number, sentences, documents) of all blocks, in any order."""
        table = np.array(sorted(sizes), np.int64).reshape(-1, 3)
        sums = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(table, axis=0)])
        return cls(sentences=sums[:, 1], documents=sums[:, 2])

    def document_batch(self, number: int, block: SentenceBlock) -> DocumentBatch:
        """A block as a batch to plan: its lengths, and where it lies in the corpus."""
        return DocumentBatch(
            sentence_offsets=_offsets(block.sentence_lengths),
            document_bounds=_offsets(block.document_sizes),
            first_sentence=int(self.sentences[number]),
            first_document=int(self.documents[number]),
        )


@dataclasses.dataclass
class ExampleBlock:
    """Truncated pairs and their tokens, A and B of one after the other: unsigned [tokens]."""

    rows: PlannedExamples
    tokens: Tokens

    @classmethod
    def of(cls, rows: PlannedExamples, tokens: Tokens) -> "ExampleBlock":
        """Takes what some examples need of a flat array of tokens."""
        starts = np.stack([rows.start_a, rows.start_b], axis=1).ravel()
        lengths = np.stack([rows.len_a, rows.len_b], axis=1).ravel().astype(np.int64)
        offsets = _offsets(lengths)
        own = dataclasses.replace(rows, start_a=offsets[:-1:2], start_b=offsets[1::2])
        return cls(own, take_spans(tokens, starts, lengths))

    def split(self, edges: Words) -> Iterator[tuple[int, "ExampleBlock"]]:
        """Cuts the block where new ranges of keys begin: (number of the range, its examples)."""
        ranges = np.searchsorted(edges, self.rows.keys, side="right")
        for number in np.unique(ranges).tolist():
            rows = self.rows.take(np.flatnonzero(ranges == number))
            yield number, ExampleBlock.of(rows, self.tokens)


@dataclasses.dataclass
class RequestBlock:
    """Chunks that wait for their random B."""

    keys: Words  # uint64 [requests]
    document: Numbers  # int64 [requests], the document that B comes from
    target_b: Numbers  # int64 [requests], tokens that B should reach
    tokens_a: Tokens  # unsigned [tokens], the A of each, one after the other, not truncated
    len_a: Numbers  # int64 [requests]


def take_spans(tokens: Tokens, starts: Numbers, lengths: Numbers) -> Tokens:
    """Copies spans of a flat array, one after the other."""
    ends = np.cumsum(lengths)
    # The position in `tokens` of each copied token is its position in the result plus a shift.
    shift = np.repeat(starts - (ends - lengths), lengths)
    return tokens[shift + np.arange(len(shift))]


def plan_block(
    number: int, block: SentenceBlock, bases: BlockBases, recipe: Recipe
) -> tuple[ExampleBlock, dict[int, RequestBlock]]:
    """Plans a block's documents in all copies."""
    chunks = plan_chunks(
        bases.document_batch(number, block),
        recipe.chunk_rules(),
        seed_word(recipe.random_seed),
        range(recipe.dupe_factor),
        int(bases.sentences[-1]),
    )
    following = chunks.take(np.flatnonzero(~chunks.is_random))
    rows = truncate(
        following, following.start_a + following.len_a, following.len_b, recipe.token_budget
    )
    return ExampleBlock.of(rows, block.ids), _requests(chunks, block, bases, recipe)


def answer_requests(
    number: int, block: SentenceBlock, bases: BlockBases, requests: RequestBlock, recipe: Recipe
) -> ExampleBlock:
    """Finishes the pairs whose B comes from this block."""
    batch = bases.document_batch(number, block)
    document = requests.document - batch.first_document
    start_b, len_b = partner_spans(
        requests.keys,
        requests.target_b,
        batch.sentence_offsets,
        batch.document_bounds[document],
        batch.document_bounds[document + 1],
    )
    tokens = np.concatenate([requests.tokens_a, block.ids])
    chunks = Chunks(
        keys=requests.keys,
        document=requests.document,
        start_a=_offsets(requests.len_a)[:-1],
        len_a=requests.len_a,
        len_b=np.zeros_like(len_b),
        is_random=np.ones(len(len_b), bool),
        target_b=requests.target_b,
    )
    rows = truncate(chunks, start_b + len(requests.tokens_a), len_b, recipe.token_budget)
    return ExampleBlock.of(rows, tokens)


def join_examples(blocks: Sequence[ExampleBlock]) -> tuple[PlannedExamples, Tokens]:
    """Joins blocks: the examples in the order of their keys, as positions in one flat array."""
    first = _offsets(np.array([len(block.tokens) for block in blocks]))
    moved = [
        dataclasses.replace(
            block.rows, start_a=block.rows.start_a + start, start_b=block.rows.start_b + start
        ).columns()
        for block, start in zip(blocks, first[:-1], strict=True)
    ]
    columns = {name: np.concatenate([one[name] for one in moved]) for name in moved[0]}
    tokens = np.concatenate([block.tokens for block in blocks])
    return PlannedExamples(**columns).ordered(), tokens


def _offsets(lengths: Numbers) -> Numbers:
    """The sum of the lengths before each one, and of all: int64 [n + 1]."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _requests(
    chunks: Chunks, block: SentenceBlock, bases: BlockBases, recipe: Recipe
) -> dict[int, RequestBlock]:
    """The requests of a block's chunks, by the block that is asked."""
    asking = chunks.take(np.flatnonzero(chunks.is_random))
    document = partner_documents(
        asking.keys, asking.document, int(bases.documents[-1]), recipe.same_document_tries
    )
    partner = np.searchsorted(bases.documents, document, side="right") - 1
    result = {}
    for number in np.unique(partner).tolist():
        rows = np.flatnonzero(partner == number)
        result[number] = RequestBlock(
            keys=asking.keys[rows],
            document=document[rows],
            target_b=asking.target_b[rows],
            tokens_a=take_spans(block.ids, asking.start_a[rows], asking.len_a[rows]),
            len_a=asking.len_a[rows],
        )
    return result


def join_requests(requests: Sequence[RequestBlock]) -> RequestBlock:
    """Joins the requests of several blocks (at least one)."""
    return RequestBlock(
        *(
            np.concatenate([getattr(block, field.name) for block in requests])
            for field in dataclasses.fields(RequestBlock)
        )
    )
