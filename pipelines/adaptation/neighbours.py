"""Vectors for new tokens out of a text alone: a token means what its neighbours mean.

The mean of the parts that a new word was cut into says little of it, and nothing where the parts
are letters of a script that the model hardly knows; training alone would have to see each word
often. So it is counted which tokens stand near which, the counts become pointwise mutual
information (positive values, with smoothed contexts: Levy, Goldberg and Dagan 2015) and its largest
singular vectors one vector a token. Tokens that the model knew before have a vector of both kinds:
the rotation that takes one kind to the other best (Schönemann 1966) takes the new tokens along.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

WINDOW = 5
_SMOOTHING = 0.75  # rare contexts would seem more telling than they are
_FEWEST = 5  # occurrences of a token that has a vector
_MOST_PAIRS = 1 << 25  # held at once: a new block of text is added to the sum before


class Neighbours:
    """Counts, sentence by sentence, which tokens stand near which.

    Args:
        size: the number of tokens of the vocabulary.

    Example:
        >>> found = Neighbours(4)
        >>> found.add(np.array([1, 2, 3, 1]), np.array([0, 3, 4]))
        >>> found.counts.tolist()
        [0, 2, 1, 1]
        >>> found.near.toarray()[1].tolist()
        [0.0, 0.0, 1.0, 0.5]
    """

    def __init__(self, size: int) -> None:
        from scipy.sparse import csr_array

        self.counts: NDArray[np.int64] = np.zeros(size, np.int64)
        self.near = csr_array((size, size), dtype=np.float32)

    def add(self, ids: NDArray, offsets: NDArray) -> None:
        """Counts some sentences.

        Args:
            ids: tokens [tokens].
            offsets: where each sentence begins, and the end [sentences + 1].
        """
        from scipy.sparse import coo_array, csr_array

        ids = ids.astype(np.int64)
        sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        left, right, weight = [], [], []
        for distance in range(1, WINDOW + 1):
            together = sentence[distance:] == sentence[:-distance]
            left.append(ids[:-distance][together])
            right.append(ids[distance:][together])
            weight.append(np.full(int(together.sum()), 1 / distance, np.float32))
        a, b, w = (np.concatenate(parts) for parts in (left, right, weight))
        pairs = (np.concatenate([w, w]), (np.concatenate([a, b]), np.concatenate([b, a])))
        self.near = self.near + csr_array(coo_array(pairs, shape=self.near.shape))
        self.counts += np.bincount(ids, minlength=len(self.counts))

    def vectors(self, width: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The tokens that are used often enough, and a vector of length 1 for each.

        Args:
            width: numbers of a vector; fewer where there are fewer tokens.

        Returns:
            Ids [tokens] and vectors [tokens, width].
        """
        from sklearn.utils.extmath import randomized_svd

        used = np.flatnonzero(self.counts >= _FEWEST)
        rank = min(width, len(used) - 1)
        if rank < 1:
            return used[:0], np.zeros((0, width), np.float32)
        information = _positive_information(self.near[used][:, used])
        left, values, _ = randomized_svd(information, rank, n_iter=3, random_state=0)
        found = np.zeros((len(used), width), np.float32)
        found[:, :rank] = left * np.sqrt(values)
        return used, found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)


def _positive_information(near: "object") -> "object":
    """Pointwise mutual information of the pairs where it is positive."""
    from scipy.sparse import coo_array, csr_array

    pairs = coo_array(near)
    total = pairs.data.sum(dtype=np.float64)
    row = np.asarray(pairs.sum(axis=1)).ravel().astype(np.float64)
    context = row**_SMOOTHING
    context /= context.sum()
    a, b = pairs.coords
    value = np.log(pairs.data / total) - np.log(row[a] / total) - np.log(context[b])
    kept = value > 0
    data = value[kept].astype(np.float32)
    return csr_array((data, (a[kept], b[kept])), shape=pairs.shape)


def placed(
    table: NDArray, new: Iterable[int], used: NDArray[np.int64], vectors: NDArray[np.float32]
) -> NDArray:
    """A table of vectors in which new tokens stand where their neighbours put them.

    What the model knew stays as it is, and so does a new token without a vector. The known tokens
    say how the one space is turned into the other; where fewer of them are used than there are
    dimensions they do not, and the table stays as it is: a made language of
    a few letters learned far worse with such vectors (masked loss 2.8 in place of 0.8).

    Args:
        table: the model's vectors [tokens, width].
        new: the ids of the new tokens.
        used: the ids of the tokens with vectors [used].
        vectors: those [used, width].
    """
    is_new = np.isin(used, np.fromiter(new, np.int64))
    if not is_new.any() or np.count_nonzero(~is_new) < table.shape[1]:
        return table
    known = table[used[~is_new]].astype(np.float64)
    centre, away = known.mean(axis=0), vectors[~is_new].mean(axis=0)
    own, ours = known - centre, vectors - away
    left, _, right = np.linalg.svd(ours[~is_new].T @ own)
    turned = ours[is_new] @ (left @ right)
    length = np.linalg.norm(own, axis=1).mean() / np.linalg.norm(turned, axis=1).mean()
    moved = table.copy()
    moved[used[is_new]] = (centre + length * turned).astype(table.dtype)
    return moved
