"""The encoder's vectors of lines of text."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_input, open_whole
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.precision import dtype_policy

POOLINGS = ("none", "mean", "cls")
COMBINATIONS = ("concat", "sum")
_LINES_AT_ONCE = 4096  # within so many lines batches are made by length
_LENGTH_STEP = 16  # lengths are rounded up to multiples of it: few shapes, few compilations


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeaturesConfig:
    """Which vectors of which text.

    Attributes:
        input_file: UTF-8 text, one input a line; " ||| " parts two segments.
        output_file: where to.
        init_checkpoint: a model directory or the prefix of a TF1 checkpoint.
        layers: numbers of blocks from 0, or from the end as -1, -2, …
        max_seq_length: the most pieces of an input, [CLS] and [SEP] included.
        batch_size: how many inputs are computed at once.
        output_format: "json" (google's form) or "npz".
        pooling: "none" (a vector a token), "mean" over an input's tokens, or "cls".
        combination: how the layers become one vector in "npz": "concat" or "sum".
        precision: what to compute in, "float32" or "bfloat16".
        bert_config_file: the configuration where the checkpoint has none beside it.
        vocab_file: the vocabulary where the checkpoint has none beside it.
        do_lower_case: the casing where the checkpoint does not say it; None is lower case, as in
            the original.
    """

    input_file: str
    output_file: str
    init_checkpoint: str
    layers: Sequence[int] = (-1, -2, -3, -4)
    max_seq_length: int = 128
    batch_size: int = 32
    output_format: str = "json"
    pooling: str = "none"
    combination: str = "concat"
    precision: str = "float32"
    bert_config_file: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None


@dataclasses.dataclass(frozen=True)
class LineFeatures:
    """The vectors of one line.

    Attributes:
        tokens: the pieces, with [CLS] and [SEP].
        ids: int32 [tokens].
        vectors: float32 [layers, tokens, hidden], in the order that was asked for.
    """

    tokens: list[str]
    ids: np.ndarray
    vectors: np.ndarray


class FeatureExtractor:
    """An encoder with its tokenizer.

    Args:
        config: what to load; only the fields that describe the model, its layers and its batches
            are read.

    Raises:
        UserError: the checkpoint is not whole, or has no such layer or no so many positions.
    """

    def __init__(self, config: FeaturesConfig) -> None:
        from keras_bert_impl.checkpoints.portable import find_description
        from keras_bert_impl.checkpoints.restore import restore
        from keras_bert_impl.fast_path.switch import forward_function
        from keras_bert_impl.models.encoder import BertEncoder
        from keras_bert_impl.tokenization.tokenizer import Tokenizer

        found = find_description(
            config.init_checkpoint,
            config.bert_config_file,
            config.vocab_file,
            config.do_lower_case,
            otherwise_lower_case=True,
        )
        self.vocabulary = found.vocabulary
        self._tokenizer = Tokenizer(found.vocabulary, found.do_lower_case, found.strip_accents)
        self._layers = _check_layers(config.layers, found.config.num_hidden_layers)
        if config.max_seq_length > found.config.max_position_embeddings:
            raise UserError(
                f"--max_seq_length={config.max_seq_length} is more than the model's "
                f"{found.config.max_position_embeddings} positions; lower it."
            )
        self._config = config
        policy = dtype_policy(config.precision)
        model = BertEncoder(found.config, return_all_layers=True, dtype=policy)
        restore(model, config.init_checkpoint)
        self._forward = forward_function(model)

    def extract(self, lines: Sequence[str]) -> Iterator[LineFeatures]:
        """The vectors of every line, in the order of the lines.

        Lines of like length are computed together, so that short ones are not padded to the
        longest.
        """
        inputs = self._pack(lines)
        order = sorted(range(len(inputs)), key=lambda place: -len(inputs[place][0]))
        results: dict[int, LineFeatures] = {}
        for start in range(0, len(order), self._config.batch_size):
            places = order[start : start + self._config.batch_size]
            vectors = self._compute([inputs[place] for place in places])
            for row, place in enumerate(places):
                ids = inputs[place][0]
                tokens = [self.vocabulary.pieces[number] for number in ids]
                results[place] = LineFeatures(tokens, ids, vectors[:, row, : len(ids)])
        for place in range(len(inputs)):
            yield results.pop(place)

    def _pack(self, lines: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ids and segments of every line, without padding."""
        from keras_bert_impl.tokenization.packing import pack_pair

        pairs = [_split_segments(line) for line in lines]
        firsts = _rows(self._tokenizer.encode_lines([first for first, _ in pairs]))
        seconds = _rows(self._tokenizer.encode_lines([second or "" for _, second in pairs]))
        inputs = []
        for first, second, (_, text) in zip(firsts, seconds, pairs, strict=True):
            other = None if text is None else second
            packed = pack_pair(first, other, self._config.max_seq_length, self.vocabulary)
            length = int(packed.input_mask.sum())
            inputs.append((packed.input_ids[:length], packed.segment_ids[:length]))
        return inputs

    def _compute(self, inputs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """[layers, rows, length, hidden] of one batch."""
        longest = max(len(ids) for ids, _ in inputs)
        length = min(-(-longest // _LENGTH_STEP) * _LENGTH_STEP, self._config.max_seq_length)
        shape = (len(inputs), max(length, longest))
        batch = {
            name: np.zeros(shape, np.int32) for name in ("input_ids", "input_mask", "segment_ids")
        }
        batch["input_ids"][:] = self.vocabulary.pad_id
        for row, (ids, segments) in enumerate(inputs):
            batch["input_ids"][row, : len(ids)] = ids
            batch["input_mask"][row, : len(ids)] = 1
            batch["segment_ids"][row, : len(ids)] = segments
        layers = self._forward(batch)["all_encoder_layers"]
        return np.asarray(layers)[self._layers].astype(np.float32)


def extract_features(config: FeaturesConfig) -> int:
    """Writes the vectors of a file's lines.

    Returns:
        The number of lines.

    Raises:
        UserError: a file is missing or not UTF-8, or the checkpoint is not what it should be.
    """
    _check_choices(config)
    lines = _read_lines(config.input_file)
    make_folder(Path(config.output_file).parent)
    extractor = FeatureExtractor(config)
    features = _with_progress(extractor, lines)
    if config.output_format == "json":
        _write_json(config, features)
    else:
        _write_npz(config, features)
    return len(lines)


def pool(features: LineFeatures, pooling: str, combination: str) -> np.ndarray:
    """One line's vectors, layers combined and tokens pooled.

    Args:
        features: the line's vectors.
        pooling: one of `POOLINGS`.
        combination: one of `COMBINATIONS`.

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


def _with_progress(extractor: FeatureExtractor, lines: Sequence[str]) -> Iterator[LineFeatures]:
    progress = Progress("extract features", len(lines), "lines")
    for start in range(0, len(lines), _LINES_AT_ONCE):
        for features in extractor.extract(lines[start : start + _LINES_AT_ONCE]):
            yield features
            progress.advance()
    progress.close()


def _write_json(config: FeaturesConfig, features: Iterator[LineFeatures]) -> None:
    with open_whole(config.output_file) as file:
        for number, line in enumerate(features):
            rounded = np.round(line.vectors.astype(np.float64), 6)
            tokens = [
                {
                    "token": token,
                    "layers": [
                        {"index": index, "values": rounded[place, position].tolist()}
                        for place, index in enumerate(config.layers)
                    ],
                }
                for position, token in enumerate(line.tokens)
            ]
            # "linex_index" is how the original spells it, and what its readers look for.
            record: dict[str, Any] = {"linex_index": number, "features": tokens}
            if config.pooling != "none":
                vector = pool(line, config.pooling, config.combination)
                record = {"linex_index": number, "values": np.round(vector, 6).tolist()}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_npz(config: FeaturesConfig, features: Iterator[LineFeatures]) -> None:
    vectors, ids = [], []
    for line in features:
        vectors.append(pool(line, config.pooling, config.combination))
        ids.append(line.ids)
    lengths = [len(row) for row in ids]
    arrays: dict[str, Any] = {
        "ids": np.concatenate(ids).astype(np.int32),  # [tokens of all lines]
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),  # [lines + 1]
        # [tokens of all lines, width], or [lines, width] if pooled
        "vectors": np.concatenate(vectors) if config.pooling == "none" else np.stack(vectors),
    }
    with open_whole(config.output_file, "wb") as file:
        np.savez(file, **arrays)


def _read_lines(path: str) -> list[str]:
    with open_input(path) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(f"{path}: line {line} is not UTF-8; convert it.") from error


def _split_segments(line: str) -> tuple[str, str | None]:
    first, bar, second = line.strip().partition(" ||| ")
    return first, second if bar else None


def _rows(block: Any) -> list[np.ndarray]:
    return np.split(block.ids, block.offsets[1:-1])


def _check_layers(layers: Sequence[int], blocks: int) -> list[int]:
    for layer in layers:
        if not -blocks <= layer < blocks:
            raise UserError(f"--layers: there is no layer {layer}; the model has {blocks} blocks.")
    return [layer % blocks for layer in layers]


def _check_choices(config: FeaturesConfig) -> None:
    if not config.layers:
        raise UserError("--layers names no layer; give at least one, such as -1.")
    for name, value, allowed in (
        ("pooling", config.pooling, POOLINGS),
        ("layer_combination", config.combination, COMBINATIONS),
        ("output_format", config.output_format, ("json", "npz")),
    ):
        if value not in allowed:
            raise UserError(f"--{name}={value} is unknown; choose {', '.join(allowed)}.")
