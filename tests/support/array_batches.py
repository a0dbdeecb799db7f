"""Sources of batches from arrays in memory, for tests of the trainer."""

import numpy as np

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, BatchSource, EvaluationSource


class ArrayBatches(BatchSource):
    """Endless batches; each epoch has an order of its own that follows from (seed, epoch) alone."""

    num_workers = 1

    def __init__(self, features, batch_size, seed, shuffle=True):
        self.features, self.batch_size = features, batch_size
        self.seed, self.shuffle = seed, shuffle
        self.num_rows = len(next(iter(features.values())))

    def batches_from(self, step):
        while True:
            rows = self.rows_of(step)
            yield {name: array[rows] for name, array in self.features.items()}
            step += 1

    def where(self, step):
        return f"examples {', '.join(map(str, sorted(self.rows_of(step))))} of the set"

    def rows_of(self, step):
        positions = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        epochs, inside = np.divmod(positions, self.num_rows)
        return [int(self.order(epoch)[row]) for epoch, row in zip(epochs, inside, strict=True)]

    def order(self, epoch):
        if not self.shuffle:
            return np.arange(self.num_rows)
        draws = np.random.default_rng([self.seed, int(epoch)])
        return draws.permutation(self.num_rows)


class ArrayEvaluation(EvaluationSource):
    """One pass over arrays in their order; the last batch is padded with row 0."""

    def __init__(self, features, batch_size):
        self.features, self.batch_size = features, batch_size
        self.num_rows = len(next(iter(features.values())))

    def batches(self):
        for first in range(0, self.num_rows, self.batch_size):
            positions = np.arange(first, first + self.batch_size)
            real = positions < self.num_rows
            rows = np.where(real, positions, 0)
            batch = {name: array[rows] for name, array in self.features.items()}
            yield {**batch, EXAMPLE_WEIGHTS: real.astype(np.float32)}
