"""The encoder's vectors of the tokens of lines of text."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.config import dtype_policy
from pipelines.vectors.options import FeaturesConfig

_LINES_AT_ONCE = 4096  # so many lines are tokenized at once
_BYTES_AT_ONCE = 256 * 1024 * 1024  # within lines with so many vectors batches are made by length
_LENGTH_STEP = 16  # lengths are rounded up to multiples of it: few shapes, few compilations


@dataclasses.dataclass(frozen=True)
class LineFeatures:
    """The vectors of one line.

    Attributes:
        tokens: the WordPiece tokens, with [CLS] and [SEP].
        ids: int32 [tokens].
        vectors: float32 [layers, tokens, hidden], in the order that was asked for.
    """

    tokens: list[str]
    ids: np.ndarray
    vectors: np.ndarray


def find_features_model(config: FeaturesConfig) -> ModelSource:
    """Finds the model of the options, without TensorFlow."""
    return find_model(
        config.model,
        bert_config_file=config.bert_config_file,
        vocab_file=config.vocab_file,
        do_lower_case=config.do_lower_case,
        default_lower_case=True,
    )


class FeatureExtractor:
    """An encoder with its tokenizer.

    Args:
        config: what to load; only the fields that describe the model, its layers and its batches
            are read.
    """

    def __init__(self, config: FeaturesConfig) -> None:
        found = find_features_model(config)
        self.text, self.vocabulary = found.text, found.text.vocabulary
        self._layers = _check_layers(config.layers, found.config.num_hidden_layers)
        self._max_length = config.max_seq_length or found.config.max_position_embeddings
        found.config.check_length(self._max_length)
        self._batch_size = config.batch_size
        self.hidden_size = found.config.hidden_size
        self._bytes_per_token = 4 * len(self._layers) * self.hidden_size
        # TensorFlow is loaded from here on: mistakes were told before.
        from keras_bert_impl.checkpoints.restore import restore
        from keras_bert_impl.cpu_kernels.kernel_choice import forward_function
        from keras_bert_impl.models.encoder import BertEncoder
        from keras_bert_impl.tokenization.tokenizer import Tokenizer

        self._tokenizer = Tokenizer(found.text)
        policy = dtype_policy(config.precision)
        model = BertEncoder(found.config, return_all_layers=True, dtype=policy)
        restore(model, str(found.checkpoint))
        self._forward = forward_function(model)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text alone, without [CLS] and [SEP]."""
        (ids,) = _rows(self._tokenizer.encode_lines([text]))
        return [self.vocabulary.tokens[number] for number in ids]

    def lengths(self, lines: Iterable[str]) -> np.ndarray:
        """How many tokens `extract` will give for each line: int32 [lines]."""
        found = [
            np.fromiter((len(ids) for ids, _ in inputs), np.int32) for inputs in self._packed(lines)
        ]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def extract(self, lines: Iterable[str]) -> Iterator[LineFeatures]:
        """The vectors of every line, in the order of the lines.

        Lines of like length are computed together, so that short ones are not padded to the
        longest. What is read and computed ahead is held to a fixed size.
        """
        for inputs in self._packed(lines):
            sizes = [len(ids) * self._bytes_per_token for ids, _ in inputs]
            for first, end in windows(sizes, self._batch_size, _BYTES_AT_ONCE):
                yield from self._extract_window(inputs[first:end])

    def _extract_window(
        self, inputs: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> Iterator[LineFeatures]:
        order = sorted(range(len(inputs)), key=lambda index: -len(inputs[index][0]))
        results: dict[int, LineFeatures] = {}
        for start in range(0, len(order), self._batch_size):
            indexes = order[start : start + self._batch_size]
            vectors = self._compute([inputs[index] for index in indexes])
            for row, index in enumerate(indexes):
                ids = inputs[index][0]
                tokens = [self.vocabulary.tokens[number] for number in ids]
                # A copy: a view would keep the whole padded batch.
                results[index] = LineFeatures(tokens, ids, vectors[:, row, : len(ids)].copy())
        for index in range(len(inputs)):
            yield results.pop(index)

    def _packed(self, lines: Iterable[str]) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
        source = iter(lines)
        while block := list(itertools.islice(source, _LINES_AT_ONCE)):
            yield self._pack(block)

    def _pack(self, lines: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ids and segments of every line, without padding."""
        from keras_bert_impl.tokenization.packing import pack_pair

        pairs = [_split_segments(line) for line in lines]
        firsts = _rows(self._tokenizer.encode_lines([first for first, _ in pairs]))
        seconds = _rows(self._tokenizer.encode_lines([second for _, second in pairs]))
        inputs = []
        for first, second in zip(firsts, seconds, strict=True):
            # A second segment without tokens counts as none, as in the original.
            other = second if len(second) else None
            packed = pack_pair(first, other, self._max_length, self.vocabulary)
            length = int(packed.input_mask.sum())
            inputs.append((packed.input_ids[:length], packed.segment_ids[:length]))
        return inputs

    def _compute(self, inputs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """[layers, rows, length, hidden] of one batch."""
        longest = max(len(ids) for ids, _ in inputs)
        length = min(-(-longest // _LENGTH_STEP) * _LENGTH_STEP, self._max_length)
        shape = (len(inputs), max(length, longest))
        batch = {name: np.zeros(shape, np.int32) for name in ENCODER_INPUTS}
        batch["input_ids"][:] = self.vocabulary.pad_id
        for row, (ids, segments) in enumerate(inputs):
            batch["input_ids"][row, : len(ids)] = ids
            batch["input_mask"][row, : len(ids)] = 1
            batch["segment_ids"][row, : len(ids)] = segments
        layers = self._forward(batch)["all_encoder_layers"]
        return np.asarray(layers)[self._layers].astype(np.float32)


def windows(sizes: Sequence[int], least: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Divides a sequence of items into windows of limited size.

    Args:
        sizes: bytes of each item.
        most_bytes: the bytes that a window has at most otherwise.

    Yields:
        The index of a window's first item and the index after its last.

    Example:
        >>> list(windows([4, 4, 4, 9, 1], least=1, most_bytes=8))
        [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    start = held = 0
    for index, size in enumerate(sizes):
        if index - start >= least and held + size > most_bytes:
            yield start, index
            start, held = index, 0
        held += size
    yield start, len(sizes)


def _split_segments(line: str) -> tuple[str, str]:
    """The two segments of a line; as in the original, the last ' ||| ' separates them."""
    first, bar, second = line.strip().rpartition(" ||| ")
    return (first, second) if bar else (second, "")


def _rows(block: Any) -> list[np.ndarray]:
    return np.split(block.ids, block.offsets[1:-1])


def _check_layers(layers: Sequence[int], blocks: int) -> list[int]:
    for layer in layers:
        if not -blocks <= layer < blocks:
            raise UserError(f"`layers`: there is no layer {layer}; the model has {blocks} blocks.")
    return [layer % blocks for layer in layers]


def pool(features: LineFeatures, pooling: str, combination: str) -> np.ndarray:
    """One line's vectors, layers combined and tokens pooled.

    Returns:
        float32 [tokens, width], or [width] if pooled.

    Example:
        >>> line = LineFeatures(["a", "b"], np.array([1, 2]), np.arange(4.0).reshape([2, 2, 1]))
        >>> pool(line, "mean", "concat").tolist(), pool(line, "cls", "sum").tolist()
        ([0.5, 2.5], [2.0])
    """
    if combination == "sum":
        tokens = features.vectors.sum(axis=0)
    else:
        tokens = np.concatenate(list(features.vectors), axis=-1)
    if pooling == "none":
        return tokens
    return tokens[0] if pooling == "cls" else tokens.mean(axis=0)
