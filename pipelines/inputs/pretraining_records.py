"""Pre-training records by number, as arrays: read, parsed in batches, masked where still to do."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.inputs.limits import check_batch
from pipelines.pretraining_data.draws import example_keys, seed_word
from pipelines.pretraining_data.examples import Rows
from pipelines.pretraining_data.masking import mask_rows
from pipelines.records.check import Expected, Shard, check_shards, find_shards
from pipelines.records.description import Description
from pipelines.records.paths import with_local_copies
from pipelines.records.reader import RecordReader
from pipelines.records.record_maker import masked_features
from pipelines.records.serialise import Feature, pair_features

Numbers = NDArray[np.int64]
_CHECKED_AT_ONCE = 2048


class PretrainingRecords:
    """The records of a set of shards, ready for a model.

    Args:
        input_files: shards: files, globs, folders or the common name of a set.
        expected: what the model needs.
        seed: fixes dynamic masking.

    Raises:
        UserError: shards that are missing, broken or made for another model.
    """

    def __init__(self, input_files: Sequence[str], expected: Expected, seed: int) -> None:
        shards = find_shards(with_local_copies(input_files))
        check_shards(shards, expected)
        self._expected, self._seed = expected, seed_word(seed)
        self._reader = RecordReader([shard.path for shard in shards])
        self._description = _common_description(shards)
        recipe = self._description.recipe if self._description else None
        self._masking = recipe.masking if recipe else "static"
        stored = self._stored_predictions()
        self._check_bare(shards, stored)
        self._parse = example_parser(pair_features(expected.max_seq_length, stored))
        if self._description and self._masking == "dynamic":
            self._rules = self._description.recipe.masking_rules(self._description.pieces)

    def __len__(self) -> int:
        return len(self._reader)

    def batch(self, epochs: Numbers, records: Numbers) -> dict[str, np.ndarray]:
        """The features of some records.

        Args:
            epochs: int64 [n], only for dynamic masking.
            records: int64 [n].

        Returns:
            The reference's features; int32, weights float32; all arrays [n, size].
        """
        features = self._parsed(records)
        if self._masking == "dynamic":
            features |= self._mask(features, epochs, records)
        elif self._masking == "none":
            features |= _no_predictions(len(records))
        return self._padded(features)

    def where(self, records: Numbers) -> list[str]:
        """Names records by shard and number: "a.tfrecord: record 3"."""
        return [f"{path}: record {number}" for path, number in self._reader.where(records)]

    def list_by_shard(self, records: Numbers) -> str:
        """Names many records, those of one shard together."""
        shards: dict[str, list[int]] = {}
        for path, number in self._reader.where(records):
            shards.setdefault(str(path), []).append(number)
        return " and ".join(
            f"record{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))} of "
            f"{path}"
            for path, numbers in shards.items()
        )

    def check(self, config: BertConfig, most: int) -> int:
        """Looks at all records, or at `most` of them spread evenly over the shards.

        Args:
            config: the model that will be fed with them.
            most: how many may be read.

        Returns:
            How many were.

        Raises:
            UserError: a record holds what the model cannot look up, or cannot be read.
        """
        count = min(len(self), most)
        chosen = np.arange(count) * len(self) // count
        for start in range(0, count, _CHECKED_AT_ONCE):
            records = chosen[start : start + _CHECKED_AT_ONCE]
            batch = self.batch(np.zeros_like(records), records)
            check_batch(batch, config, self._namer(records))
        return count

    def _parsed(self, records: Numbers) -> dict[str, np.ndarray]:
        import tensorflow as tf

        contents = self._reader.read(records)
        try:
            return self._parse(contents)
        except tf.errors.InvalidArgumentError:
            for row, content in enumerate(contents):
                try:
                    self._parse([content])
                except tf.errors.InvalidArgumentError as error:
                    raise UserError(
                        f"{self._namer(records)(row)}: is no example of the form of the first one "
                        f"({_reason(error)}); make this shard again, or read it in another run."
                    ) from error
            raise

    def _namer(self, records: Numbers) -> Callable[[int], str]:
        return lambda row: self.where(records[row : row + 1])[0]

    def _mask(
        self, features: Mapping[str, np.ndarray], epochs: Numbers, records: Numbers
    ) -> dict[str, np.ndarray]:
        """Masks pairs anew: a pure function of (seed, epoch, record); changes `input_ids`."""
        assert self._description is not None
        pairs = self._description.recipe.do_next_sentence
        lengths = features["input_mask"].sum(axis=1, dtype=np.int64)
        len_b = np.maximum(features["segment_ids"].sum(axis=1, dtype=np.int64) - 1, 0)
        rows = Rows(features["input_ids"], lengths - len_b - (3 if pairs else 2), len_b, pairs)
        identities = (epochs * len(self) + records).astype(np.uint64)
        return masked_features(mask_rows(rows, example_keys(identities, self._seed), self._rules))

    def _padded(self, features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Right types, and predictions filled up with zeros to what the model expects."""
        wanted = pair_features(
            self._expected.max_seq_length, self._expected.max_predictions_per_seq
        )
        result = {}
        for feature in wanted:
            numbers = features[feature.name]
            kind = np.float32 if feature.is_float else np.int32
            if numbers.shape[1] < feature.size:
                numbers = np.pad(numbers, ((0, 0), (0, feature.size - numbers.shape[1])))
            result[feature.name] = numbers.astype(kind, copy=False)
        return result

    def _stored_predictions(self) -> int | None:
        """Predictions in the records, by the description or by looking at the first one."""
        if self._description:
            return self._description.recipe.stored_predictions
        return self._sizes(0).get("masked_lm_ids", self._expected.max_predictions_per_seq)

    def _sizes(self, record: int) -> dict[str, int]:
        where = self._namer(np.array([record]))
        return feature_sizes(self._reader.read(np.array([record]))[0], where(0))

    def _check_bare(self, shards: Sequence[Shard], stored: int | None) -> None:
        """Compares the first record of each bare shard with what is expected."""
        for number, shard in enumerate(shards):
            first = self._reader.first_record(number)
            if shard.description is not None or first is None:
                continue
            sizes = self._sizes(first)
            length, predictions = sizes.get("input_ids"), sizes.get("masked_lm_ids", 0)
            missing = [f.name for f in pair_features(1, 1) if f.name not in sizes]
            if missing:
                raise UserError(
                    f"{shard.path}: its examples have no {missing[0]}, so they are not for "
                    "pre-training; name shards of create_pretraining_data."
                )
            if length != self._expected.max_seq_length:
                raise UserError(
                    f"{shard.path}: its examples have length {length}, not "
                    f"{self._expected.max_seq_length}; pass the right --max_seq_length."
                )
            if predictions > self._expected.max_predictions_per_seq:
                raise UserError(
                    f"{shard.path}: holds up to {predictions} predictions an example, more than "
                    f"--max_predictions_per_seq={self._expected.max_predictions_per_seq}; pass "
                    f"--max_predictions_per_seq={predictions}."
                )
            if predictions != stored:
                raise UserError(
                    f"{shard.path}: stores {predictions} predictions an example, the shards before "
                    f"it {stored}; read them in separate runs."
                )


def stored_shape(
    shards: Sequence[Shard], vocabulary_sha256: str | None = None
) -> tuple[Expected, bool]:
    """What shards hold, for who has no model to compare with.

    Args:
        shards: at least one; the first decides.
        vocabulary_sha256: kept in the result, to be compared with the shards'.

    Returns:
        Their length and predictions, and whether they hold pairs.
    """
    if (description := shards[0].description) is not None:
        recipe = description.recipe
        length, predictions = recipe.max_seq_length, recipe.max_predictions_per_seq
        return Expected(length, predictions, vocabulary_sha256), recipe.do_next_sentence
    first = RecordReader([shards[0].path]).read(np.array([0]))[0]
    sizes = feature_sizes(first, f"{shards[0].path}: record 0")
    predictions = sizes.get("masked_lm_ids", 0)
    return Expected(sizes.get("input_ids", 0), predictions, vocabulary_sha256), True


def example_parser(
    features: Sequence[Feature],
) -> Callable[[list[bytes]], dict[str, np.ndarray]]:
    """Makes a function that parses serialised examples of fixed shape, a batch at a time.

    Args:
        features: what the examples hold.

    Returns:
        A function from serialised `tf.train.Example`s to arrays [examples, size], int32 or float32.
    """
    import tensorflow as tf

    spec = {
        feature.name: tf.io.FixedLenFeature(
            [feature.size], tf.float32 if feature.is_float else tf.int64
        )
        for feature in features
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def parse(contents: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.device("/cpu:0"):
            parsed = tf.io.parse_example(contents, spec)
            return {
                name: tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.int32)
                for name, tensor in parsed.items()
            }

    return lambda contents: {name: each.numpy() for name, each in parse(contents).items()}


def feature_sizes(content: bytes, where: str) -> dict[str, int]:
    """How many numbers each feature of one serialised example holds.

    Args:
        content: the record.
        where: names it, for the sentence.

    Raises:
        UserError: it is no `tf.train.Example`.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        example = tf.train.Example.FromString(content)
    except DecodeError as error:
        raise UserError(
            f"{where}: is no tf.train.Example; name shards of create_pretraining_data."
        ) from error
    return {
        name: len(feature.float_list.value or feature.int64_list.value)
        for name, feature in example.features.feature.items()
    }


def _reason(error: Any) -> str:
    """The part of TensorFlow's message that speaks of the record."""
    return error.message.split("\n")[0].rpartition("}} ")[2].rstrip(".")


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
    reading = (recipe.masking, recipe.stored_predictions, recipe.do_next_sentence)
    if recipe.masking != "dynamic":
        return reading
    return (
        *reading,
        recipe.max_predictions_per_seq,
        recipe.masked_lm_prob,
        recipe.do_whole_word_mask,
        recipe.max_ngram,
        recipe.mask_probabilities,
        recipe.random_replacements,
    )


def _no_predictions(examples: int) -> dict[str, np.ndarray]:
    """Features of examples that nobody masks."""
    empty = np.zeros((examples, 0), np.int64)
    return {
        "masked_lm_positions": empty,
        "masked_lm_ids": empty,
        "masked_lm_weights": empty.astype(np.float32),
    }
