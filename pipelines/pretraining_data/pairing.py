"""From planned chunks to plan rows: B found, both sides truncated, ready to be gathered."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.chunks import Chunks
from pipelines.pretraining_data.draws import Purpose, Words
from pipelines.pretraining_data.examples import Spans
from pipelines.pretraining_data.partners import partner_documents, partner_spans
from pipelines.pretraining_data.truncation import dropped_from_front, truncated_lengths

Numbers = NDArray[np.int64]


@dataclasses.dataclass
class PlanRows:
    """Examples as places in the corpus, 21 bytes each and the key.

    Attributes:
        keys: uint64 [examples]; also the order of the examples in the shards.
        start_a, start_b: int64 [examples], first tokens.
        len_a, len_b: uint16 [examples], tokens after truncation; `len_b` 0 where there is no B.
        is_random: bool [examples], the next-sentence label.
    """

    keys: Words
    start_a: Numbers
    start_b: Numbers
    len_a: NDArray[np.uint16]
    len_b: NDArray[np.uint16]
    is_random: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keys)

    def columns(self) -> dict[str, NDArray]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def ordered(self) -> "PlanRows":
        """The rows by ascending key: the global shuffle."""
        order = np.argsort(self.keys)
        return PlanRows(**{name: column[order] for name, column in self.columns().items()})

    def spans(self, rows: slice) -> Spans:
        """The places of some rows, as `gather_rows` wants them."""
        return Spans(
            self.start_a[rows],
            self.len_a[rows].astype(np.int64),
            self.start_b[rows],
            self.len_b[rows].astype(np.int64),
        )


def place_partners(
    chunks: Chunks, sentence_offsets: Numbers, document_bounds: Numbers, same_tries: int
) -> tuple[Numbers, Numbers]:
    """Where B stands, for all chunks: behind A, or where a random partner was found.

    Args:
        chunks: the planned chunks.
        sentence_offsets: int64 [sentences + 1] of the whole corpus (may be memory-mapped).
        document_bounds: int64 [documents + 1] of the whole corpus (may be memory-mapped).
        same_tries: see `partner_documents`.

    Returns:
        int64 [chunks] first token and int64 [chunks] length, not yet truncated.
    """
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


def truncate(chunks: Chunks, start_b: Numbers, len_b: Numbers, room: int) -> PlanRows:
    """Cuts A and B so that they fit.

    Args:
        chunks: give the keys and A.
        start_b: int64 [chunks], where B begins.
        len_b: int64 [chunks], tokens of B, not yet truncated.
        room: tokens for A and B together.
    """
    kept_a, kept_b = truncated_lengths(chunks.len_a, len_b, room)
    front_a = dropped_from_front(chunks.len_a - kept_a, chunks.keys, Purpose.TRUNCATE_A)
    front_b = dropped_from_front(len_b - kept_b, chunks.keys, Purpose.TRUNCATE_B)
    return PlanRows(
        keys=chunks.keys,
        start_a=chunks.start_a + front_a,
        start_b=start_b + front_b,
        len_a=kept_a.astype(np.uint16),
        len_b=kept_b.astype(np.uint16),
        is_random=chunks.is_random,
    )
