"""One list of cases for the windows in NumPy and in a graph, and a plain loop to compare with."""

import numpy as np

# lengths of the documents, size, stride: (document, start, end) of each window
CASES = [
    ([], 4, 2, []),
    ([0], 4, 2, [(0, 0, 0)]),
    ([1], 1, 1, [(0, 0, 1)]),
    ([4], 4, 2, [(0, 0, 4)]),
    ([5], 4, 2, [(0, 0, 4), (0, 2, 5)]),
    ([6], 4, 2, [(0, 0, 4), (0, 2, 6)]),
    ([7, 0, 3], 4, 2, [(0, 0, 4), (0, 2, 6), (0, 4, 7), (1, 0, 0), (2, 0, 3)]),
    ([7], 3, 9, [(0, 0, 3), (0, 3, 6), (0, 6, 7)]),  # a stride over the size leaves no gap
    ([5, 5], [2, 4], 1, [(0, 0, 2), (0, 1, 3), (0, 2, 4), (0, 3, 5), (1, 0, 4), (1, 1, 5)]),
]


def plain_windows(lengths, size, stride):
    """A loop over one document after the other."""
    for document, length in enumerate(lengths):
        start = 0
        while True:
            end = min(start + size, length)
            yield document, start, end
            if end == length:
                break
            start += min(size, stride)


def plain_owners(windows):
    """For each token of each document, the window that shows most around it."""
    owners = {}
    for number, (document, start, end) in enumerate(windows):
        for position in range(start, end):
            context = min(position - start, end - 1 - position) + 0.01 * (end - start)
            if context > owners.get((document, position), (-1.0, 0))[0]:
                owners[document, position] = context, number
    return {token: number for token, (_, number) in owners.items()}


def as_list(windows):
    return list(zip(*(np.asarray(array).tolist() for array in windows), strict=True))
