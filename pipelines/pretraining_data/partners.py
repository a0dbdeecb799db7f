"""Random next sentences: a request to another document, and its answer.

A chunk whose B comes from elsewhere asks for (document, draw). Which document and which start
sentence follow from the chunk's key alone, so the answer can be looked up in memory-mapped offsets
or joined by document number on a cluster.
"""

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Purpose, Words, below, draw

Numbers = NDArray[np.int64]


def partner_documents(keys: Words, own: Numbers, documents: int, same_tries: int = 0) -> Numbers:
    """The document that a random B comes from.

    Args:
        keys: uint64 [requests].
        own: int64 [requests], the document of A.
        documents: documents in the corpus.
        same_tries: 0 draws among the other documents only. A positive number draws among all of
            them, again while it hits A's own, up to so many times, as the reference does with 10:
            after the last try a B from A's own document is labelled random.

    Returns:
        int64 [requests], document numbers.

    Example:
        >>> keys = np.arange(5, dtype=np.uint64)
        >>> partner_documents(keys, np.zeros(5, np.int64), 2).tolist()
        [1, 1, 1, 1, 1]
    """
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
    """The tokens that a random B takes: from a uniform sentence on until the target is reached.

    Args:
        keys: uint64 [requests].
        target_b: int64 [requests], tokens to reach (at least one sentence is taken).
        sentence_offsets: int64 [sentences + 1], tokens before each sentence.
        document_start: int64 [requests], first sentence of the asked document.
        document_end: int64 [requests], the sentence after its last.

    Returns:
        int64 [requests] first token and int64 [requests] number of tokens.

    Example:
        >>> offsets, key = np.array([0, 5, 9, 14]), np.array([1], np.uint64)
        >>> zero, three = np.array([0]), np.array([3])
        >>> start, length = partner_spans(key, np.array([99]), offsets, zero, three)
        >>> (start + length).tolist()
        [14]
    """
    sentences = (document_end - document_start).astype(np.uint64)
    first = document_start + below(draw(keys, Purpose.PARTNER_SENTENCE), sentences)
    start = sentence_offsets[first]
    end = np.minimum(np.searchsorted(sentence_offsets, start + target_b), document_end)
    return start, sentence_offsets[end] - start
