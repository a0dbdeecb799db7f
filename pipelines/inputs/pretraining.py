"""Batches for pre-training: from indexed shards, in an order that is arithmetic.

Which record comes at a position of the endless sequence of epochs is a pure function of the seed
and the position. So a checkpoint needs to hold only the step, and a resumed run reads exactly the
records that an uninterrupted one would have read, even with another number of workers. Where the
shards' recipe says that masking is dynamic, records are masked here: a pure function of the seed,
the epoch and the record.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, BatchSource, EvaluationSource
from pipelines.pretraining_data.draws import below, example_keys, mix, seed_word
from pipelines.pretraining_data.masking import MASKED_LM, Targets, mask_examples, predict_neighbours
from pipelines.pretraining_data.pairs import PaddedExamples
from pipelines.records.check import Expected, Shard, check_shape, check_shards, find_shards
from pipelines.records.description import Description
from pipelines.records.reader import RecordReader
from pipelines.records.record_maker import masked_features
from pipelines.records.serialise import example_parser, feature_sizes, pair_features

Numbers = NDArray[np.int64]
_ROUNDS = 6


def shuffled(positions: Numbers, size: int, key: np.uint64) -> Numbers:
    """A pseudo-random permutation of 0 .. size - 1, evaluated at some positions [n].

    Nothing of the size of the set is kept: a Feistel network over pairs (left, right) with
    `width * height >= size`.

    Example:
        >>> sorted(shuffled(np.arange(10), 10, np.uint64(7)).tolist()) == list(range(10))
        True
    """
    width = math.isqrt(size - 1) + 1
    height = -(-size // width)
    result = _network(positions, width, height, key)
    # A result outside the set is permuted again until it lies inside ("cycle walking"), which keeps
    # the whole a permutation; width * height exceeds the size only a little, so that is rare.
    while (outside := np.flatnonzero(result >= size)).size:
        result[outside] = _network(result[outside], width, height, key)
    return result


def _network(numbers: Numbers, width: int, height: int, key: np.uint64) -> Numbers:
    left, right = numbers // width, numbers % width
    for step in range(_ROUNDS):
        salt = mix(np.array([step + 1], np.uint64) + key)
        if step % 2 == 0:
            left = (left + below(mix(mix(right.astype(np.uint64) + salt)), height)) % height
        else:
            right = (right + below(mix(mix(left.astype(np.uint64) + salt)), width)) % width
    return left * width + right


class RecordOrder:
    """Which record comes at each position of an endless sequence of epochs."""

    def __init__(self, records: int, seed: int, shuffle: bool = True) -> None:
        self._records, self._shuffle = records, shuffle
        self._key = seed_word(seed)

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """The epoch and the record at each position: two int64 [n]."""
        epochs, inside = np.divmod(positions, self._records)
        if not self._shuffle:
            return epochs, inside
        records = np.empty_like(inside)
        for epoch in np.unique(epochs).tolist():
            chosen = epochs == epoch
            key = mix(np.array([epoch], np.uint64) + self._key)[0]
            records[chosen] = shuffled(inside[chosen], self._records, key)
        return epochs, records


class PretrainingRecords:
    """The records of a set of shards, ready for a model; `reader` gives their names."""

    def __init__(
        self,
        input_files: Sequence[str],
        expected: Expected,
        seed: int,
        targets: Targets | None = None,
    ) -> None:
        shards = find_shards(input_files)
        check_shards(shards, expected)
        targets = targets or Targets()
        self._objective = targets.objective
        self._expected, self._seed = expected, seed_word(seed)
        self.reader = RecordReader([shard.path for shard in shards])
        self._description = _common_description(shards)
        recipe = self._description.recipe if self._description else None
        self._masking = recipe.masking if recipe else "static"
        if targets != Targets() and self._masking == "static":
            option = "mask_probabilities" if targets.mask_probabilities else "objective"
            raise UserError(
                f"`{option}` needs unmasked text, but the records of {shards[0].path} are masked; "
                "make them again with create_pretraining_data and `masking=dynamic`."
            )
        usual = expected.max_predictions_per_seq
        stored = recipe.stored_predictions if recipe else self._sizes(0).get("masked_lm_ids", usual)
        self._check_bare(shards, stored)
        self._parse = example_parser(pair_features(expected.max_seq_length, stored))
        if self._description and self._masking == "dynamic":
            recipe = self._description.recipe
            if targets.mask_probabilities:
                recipe = dataclasses.replace(recipe, mask_probabilities=targets.mask_probabilities)
            self._rules = recipe.masking_rules(self._description.vocabulary)

    def __len__(self) -> int:
        return len(self.reader)

    @property
    def copies_of_text(self) -> int:
        """How often the records hold the text, as the recipe says; 1 if unknown."""
        return self._description.recipe.dupe_factor if self._description else 1

    def batch(self, epochs: Numbers, records: Numbers) -> dict[str, np.ndarray]:
        """The reference's features of records [n], [n, size] each; int32, weights float32.

        The epochs [n] count only in dynamic masking.
        """
        features = self._parsed(records)
        if self._objective != MASKED_LM:
            neighbours = predict_neighbours(self._examples(features), self._objective)
            features |= masked_features(neighbours)
        elif self._masking == "dynamic":
            features |= self._mask(features, epochs, records)
        batch = self._padded(features)
        if self._expected.model_config:
            check_batch(batch, self._expected.model_config, self.reader.namer(records))
        return batch

    def _parsed(self, records: Numbers) -> dict[str, np.ndarray]:
        import tensorflow as tf

        contents = self.reader.read(records)
        # The latter where the record's bytes, which TensorFlow's message repeats, are no UTF-8.
        refused = (tf.errors.InvalidArgumentError, UnicodeDecodeError)
        try:
            return self._parse(contents)
        except refused:
            # TensorFlow does not tell which record of the batch it was.
            for record, content in zip(records.tolist(), contents, strict=True):
                try:
                    self._parse([content])
                except refused as error:
                    raise UserError(
                        f"{self.reader.name(record)}: is no example of the form of the first one; "
                        "make this shard again, or read it in another run."
                    ) from error
            raise

    def _mask(
        self, features: Mapping[str, np.ndarray], epochs: Numbers, records: Numbers
    ) -> dict[str, np.ndarray]:
        """Masks pairs anew: a pure function of (seed, epoch, record); changes `input_ids`."""
        keys = example_keys((epochs * len(self) + records).astype(np.uint64), self._seed)
        return masked_features(mask_examples(self._examples(features), keys, self._rules))

    def _examples(self, features: Mapping[str, np.ndarray]) -> PaddedExamples:
        """The pairs of unmasked records; their ids are those of the features."""
        assert self._description is not None
        pairs = self._description.recipe.do_next_sentence
        lengths = features["input_mask"].sum(axis=1, dtype=np.int64)
        len_b = np.maximum(features["segment_ids"].sum(axis=1, dtype=np.int64) - 1, 0)
        len_a = lengths - len_b - (3 if pairs else 2)
        return PaddedExamples(features["input_ids"], len_a, len_b, pairs)

    def _padded(self, features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Right types, and predictions filled up with zeros to what the model expects."""
        length, predictions = self._expected.max_seq_length, self._expected.max_predictions_per_seq
        unmasked = np.zeros((len(features["input_ids"]), 0))
        result = {}
        for feature in pair_features(length, predictions):
            numbers = features.get(feature.name, unmasked)
            kind = np.float32 if feature.is_float else np.int32
            if numbers.shape[1] < feature.size:
                numbers = np.pad(numbers, ((0, 0), (0, feature.size - numbers.shape[1])))
            result[feature.name] = numbers.astype(kind, copy=False)
        return result

    def _sizes(self, record: int) -> dict[str, int]:
        return feature_sizes(self.reader.read(np.array([record]))[0], self.reader.name(record))

    def _check_bare(self, shards: Sequence[Shard], stored: int | None) -> None:
        """Compares the first record of each bare shard with what is expected."""
        for number, shard in enumerate(shards):
            first = self.reader.first_record(number)
            if shard.description is not None or first is None:
                continue
            sizes = self._sizes(first)
            predictions = sizes.get("masked_lm_ids", 0)
            if missing := [f.name for f in pair_features(1, 1) if f.name not in sizes]:
                raise UserError(
                    f"{shard.path}: its examples have no {missing[0]}, so they are not for "
                    "pre-training; name shards of create_pretraining_data."
                )
            check_shape(shard.path, sizes["input_ids"], predictions, self._expected)
            if predictions != stored:
                raise UserError(
                    f"{shard.path}: stores {predictions} predictions an example, the shards before "
                    f"it {stored}; read them in separate runs."
                )


def stored_shape(shards: Sequence[Shard], vocabulary: Vocabulary) -> tuple[Expected, bool]:
    """What shards hold, for callers without a model, and whether their examples are pairs."""
    pairs = True
    if (description := shards[0].description) is not None:
        recipe, pairs = description.recipe, description.recipe.do_next_sentence
        sizes = recipe.max_seq_length, recipe.max_predictions_per_seq
    else:
        reader = RecordReader([shard.path for shard in shards])
        found = feature_sizes(reader.read(np.array([0]))[0], reader.name(0))
        sizes = found.get("input_ids", 0), found.get("masked_lm_ids", 0)
    config = BertConfig(vocab_size=len(vocabulary))
    return Expected(*sizes, vocabulary.sha256, model_config=config), pairs


def _common_description(shards: Sequence[Shard]) -> Description | None:
    """The description that all shards share in what matters for reading, or None for bare ones."""
    first = shards[0]
    for shard in shards[1:]:
        if _reading(shard) != _reading(first):
            raise UserError(
                f"{shard.path}: is stored in another way than {first.path} (masking or predictions "
                "differ, or one has no description); read them in separate runs."
            )
    return first.description


def _reading(shard: Shard) -> tuple | None:
    if shard.description is None:
        return None
    recipe = shard.description.recipe
    # How often and how the text was cut shows in the records.
    fields = dataclasses.asdict(recipe)
    of_records = {"dupe_factor", "short_seq_prob", "random_seed", "same_document_tries"}
    if recipe.masking != "dynamic":
        of_records |= fields.keys() - {"masking", "do_next_sentence"}
    return recipe.stored_predictions, *(fields[name] for name in sorted(fields.keys() - of_records))


def check_batch(
    batch: Mapping[str, np.ndarray], config: BertConfig, where: Callable[[int], str]
) -> None:
    """Refuses ids that the model has no embedding for, and weights that are NaN or negative.

    On a GPU TensorFlow looks up zeros for an id outside a table and says nothing, so a run with the
    wrong vocabulary would train for days. It costs two passes over a batch's integers.

    Example:
        >>> batch = {"input_ids": np.array([[2, 99]])}
        >>> check_batch(batch, BertConfig(vocab_size=50), lambda row: f"a.tfrecord: record {row}")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: a.tfrecord: record 0 has 99 in input_ids, but the model
        only knows 0 to 49 (vocab_size); use the vocabulary and configuration that the shards were
        made with.
    """
    length = batch["input_ids"].shape[1]
    limits = {
        "input_ids": (config.vocab_size, "vocab_size"),
        "masked_lm_ids": (config.vocab_size, "vocab_size"),
        "segment_ids": (config.type_vocab_size, "type_vocab_size"),
        "masked_lm_positions": (length, "the sequence length"),
        "next_sentence_labels": (2, "next or random"),
        "input_mask": (2, "padding or not"),
    }
    for name, (limit, meaning) in limits.items():
        values = batch.get(name)
        if values is None or not values.size or (values.min() >= 0 and values.max() < limit):
            continue
        raise UserError(
            f"{_first(values, (values < 0) | (values >= limit), where)} in {name}, but the model "
            f"only knows 0 to {limit - 1} ({meaning}); use the vocabulary and configuration that "
            "the shards were made with."
        )
    weights = batch.get("masked_lm_weights", np.zeros((0, 0)))
    if (wrong := ~np.isfinite(weights) | (weights < 0)).any():
        raise UserError(
            f"{_first(weights, wrong, where)} in masked_lm_weights, but a weight is a number from "
            "0 on; make this shard again."
        )


def _first(values: np.ndarray, wrong: np.ndarray, where: Callable[[int], str]) -> str:
    """The first wrong value, with its record."""
    row = int(np.flatnonzero(wrong.any(axis=-1))[0])
    return f"{where(row)} has {values[row][wrong[row]][0]}"


Batch = Mapping[str, np.ndarray]


class PretrainingBatches(BatchSource):
    """Endless training batches; the batch at a step is a pure function of (seed, step).

    Batches hold the reference's features, int32 except for the weights (float32): `input_ids`,
    `input_mask`, `segment_ids` [batch, length], `masked_lm_positions`, `masked_lm_ids`,
    `masked_lm_weights` [batch, predictions], `next_sentence_labels` [batch, 1]. Unmasked shards of
    a dynamic recipe are masked here, anew in each epoch.
    """

    def __init__(
        self,
        input_files: Sequence[str],
        batch_size: int,
        expected: Expected,
        seed: int,
        shuffle: bool = True,
        worker: int = 0,
        num_workers: int = 1,
        targets: Targets | None = None,
    ) -> None:
        if batch_size < num_workers:
            raise UserError(
                f"`train_batch_size={batch_size}` leaves some of the {num_workers} workers without "
                "an example; raise it."
            )
        self._records = PretrainingRecords(input_files, expected, seed, targets)
        self._order = RecordOrder(len(self._records), seed, shuffle)
        self._part = np.array_split(np.arange(batch_size), num_workers)[worker]
        self.batch_size = batch_size
        self.num_workers = num_workers

    @property
    def num_examples(self) -> int:
        """Examples in an epoch."""
        return len(self._records)

    @property
    def copies_of_text(self) -> int:
        """How often an epoch reads the text."""
        return self._records.copies_of_text

    def batch_at(self, step: int) -> Batch:
        """The batch of one step."""
        epochs, records = self._order.at(step * self.batch_size + self._part)
        return self._records.batch(epochs, records)

    def where(self, step: int) -> str:
        """Names the records of one step's global batch, by shard."""
        _, records = self._order.at(step * self.batch_size + np.arange(self.batch_size))
        return self._records.reader.list_by_shard(records)


class PretrainingEvaluation(EvaluationSource):
    """One pass over shards in the order of their files, with `example_weights` [batch].

    The last batch is padded with copies of the first record, of weight 0. Dynamic masking is that
    of epoch 0, so every pass sees the same batches.
    """

    def __init__(
        self,
        input_files: Sequence[str],
        batch_size: int,
        expected: Expected,
        max_batches: int | None = None,
        targets: Targets | None = None,
    ) -> None:
        self._records = PretrainingRecords(input_files, expected, 0, targets)
        self.batch_size = batch_size
        self.num_records = len(self._records)
        batches = -(-self.num_records // batch_size)
        self.num_batches = min(batches, max_batches or batches)

    @property
    def num_examples(self) -> int:
        """Real examples of the pass."""
        return min(len(self._records), self.num_batches * self.batch_size)

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        for batch in range(self.num_batches):
            positions = np.arange(batch * self.batch_size, (batch + 1) * self.batch_size)
            real: NDArray[np.bool_] = positions < len(self._records)
            records = np.where(real, positions, 0)
            features = self._records.batch(np.zeros_like(records), records)
            yield {**features, EXAMPLE_WEIGHTS: real.astype(np.float32)}
