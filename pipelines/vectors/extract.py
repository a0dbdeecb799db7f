"""The encoder's vectors of the tokens of lines of text, as JSON lines or NumPy arrays."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.engines.engine import check_finite
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.packing import pack_batch
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.config import dtype_policy
from pipelines.corpora.documents import refuse_output_among_input
from pipelines.vectors.options import FeaturesConfig
from pipelines.vectors.texts import count_texts, open_texts

_LINES_AT_ONCE = 4096
_BYTES_AT_ONCE = 256 << 20  # of vectors: batches are made by length within lines with so many
_LENGTH_STEP = 16  # lengths are rounded up to multiples of it: few shapes, few compilations


@dataclasses.dataclass(frozen=True)
class LineFeatures:
    """The vectors of one line."""

    tokens: list[str]  # WordPiece, with [CLS] and [SEP]
    ids: np.ndarray  # int32 [tokens]
    vectors: np.ndarray  # float32 [layers, tokens, hidden], in the order that was asked for


class FeatureExtractor:
    """An encoder with its tokenizer; of the options those of the model, its layers and batches."""

    def __init__(self, config: FeaturesConfig) -> None:
        found = find_model(config.model, **config.description(), default_lower_case=True)
        self._found, self.text, blocks = found, found.text, found.config.num_hidden_layers
        for layer in config.layers:
            if not -blocks <= layer < blocks:
                raise UserError(
                    f"`layers`: there is no layer {layer}; the model has {blocks} blocks."
                )
        self._layers = [layer % blocks for layer in config.layers]
        self._max_length = config.max_seq_length or found.config.max_position_embeddings
        found.config.check_length(self._max_length, at_least=3)
        self._batch_size, self._policy = config.batch_size, dtype_policy(config.precision)
        bytes_per_line = 4 * len(self._layers) * found.config.hidden_size * self._max_length
        fitting = max(self._batch_size, _BYTES_AT_ONCE // bytes_per_line)
        self._lines_at_once = min(_LINES_AT_ONCE, fitting)

    @functools.cached_property
    def _forward(self) -> Callable[[Mapping[str, Any]], Any]:
        from keras_bert_impl.cpu_kernels.kernel_choice import forward_function  # TensorFlow
        from keras_bert_impl.models.encoder import BertEncoder

        model = BertEncoder(self._found.config, return_all_layers=True, dtype=self._policy)
        restore(model, self._found.tensors())
        return forward_function(model)

    def extract(self, lines: Iterable[str]) -> Iterator[LineFeatures]:
        """The vectors of every line, in the order of the lines.

        Lines of like length are computed together, so that short ones are not padded to the
        longest. What is read and computed ahead is held to a fixed size.
        """
        source, tokenizer = iter(lines), Tokenizer(self.text)
        while block := list(itertools.islice(source, self._lines_at_once)):
            yield from self._of_block(block, tokenizer)

    def _of_block(self, lines: Sequence[str], tokenizer: Tokenizer) -> Iterator[LineFeatures]:
        vocabulary = self.text.vocabulary
        pairs = [_split_segments(line) for line in lines]
        blocks = (tokenizer.encode_lines(some) for some in zip(*pairs, strict=True))
        firsts, seconds = (np.split(block.ids, block.offsets[1:-1]) for block in blocks)
        packed = pack_batch(firsts, seconds, vocabulary, self._max_length, False)
        self._found.config.check_segments([packed["segment_ids"]])
        lengths = packed["input_mask"].sum(axis=1)
        order = np.argsort(-lengths, kind="stable")
        results: dict[int, LineFeatures] = {}
        for start in range(0, len(order), self._batch_size):
            some = order[start : start + self._batch_size]
            length = -(-lengths[some[0]] // _LENGTH_STEP) * _LENGTH_STEP
            layers = self._forward({name: x[some, :length] for name, x in packed.items()})
            vectors = np.asarray(layers["all_encoder_layers"])[self._layers].astype(np.float32)
            for row, index in enumerate(some.tolist()):
                ids = packed["input_ids"][index, : lengths[index]]
                tokens = [vocabulary.tokens[number] for number in ids]
                # A copy: a view would keep the whole padded batch.
                own = vectors[:, row, : len(ids)].copy()
                check_finite({"vectors": own}, self._found.checkpoint)
                results[index] = LineFeatures(tokens, ids, own)
        yield from map(results.pop, range(len(lines)))


def _split_segments(line: str) -> tuple[str, str]:
    """The two segments of a line; as in the original, the last ' ||| ' separates them."""
    first, bar, second = line.strip().rpartition(" ||| ")
    return (first, second) if bar else (second, "")


def pool(features: LineFeatures, pooling: str, combination: str) -> np.ndarray:
    """One line's vectors, layers combined: float32 [tokens, width], or [width] if pooled.

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


def extract_features(config: FeaturesConfig) -> int:
    """Writes the vectors of a file's lines, JSON line by line; gives the number of lines."""
    lines = open_texts(config.input_file, config.text_column, config.text_encoding)
    # A fault in the last line is found before the work begins.
    total = count_texts(lines, config.input_file)
    output = check_output(config.output_file)
    refuse_output_among_input([config.input_file], [output], "output_file")
    extractor = FeatureExtractor(config)
    config.unknown.check(lines, extractor.text, config.input_file)
    features = Progress("extract features", total, "lines").over(extractor.extract(lines))
    (_write_json if config.output_format == "json" else _write_npz)(config, features)
    return total


def _write_npz(config: FeaturesConfig, lines: Iterable[LineFeatures]) -> None:
    """Writes `vectors`, `ids` and `offsets`, gathered in memory.

    `vectors` is float32 [tokens of all lines, width], or [lines, width] if pooled; `ids` int32
    [tokens of all lines]; `offsets` int64 [lines + 1], where each line's tokens begin.
    """
    vectors, ids = list[np.ndarray](), list[np.ndarray]()
    for line in lines:
        vectors.append(np.atleast_2d(pool(line, config.pooling, config.layer_combination)))
        ids.append(line.ids.astype(np.int32))
    offsets = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    with open_whole(followed(config.output_file), "wb") as file:
        np.savez(file, vectors=np.concatenate(vectors), ids=np.concatenate(ids), offsets=offsets)


def _write_json(config: FeaturesConfig, lines: Iterable[LineFeatures]) -> None:
    """Writes google's form, `linex_index` and a vector a token and layer, or one vector a line."""
    with open_whole(followed(config.output_file)) as file:
        for number, line in enumerate(lines):
            # "linex_index" is how the original spells it, and what its readers look for.
            record: dict[str, Any] = {"linex_index": number}
            if config.pooling == "none":
                rounded = np.round(line.vectors.astype(np.float64), 6)
                record["features"] = [
                    {
                        "token": token,
                        "layers": [
                            {"index": index, "values": rounded[layer, position].tolist()}
                            for layer, index in enumerate(config.layers)
                        ],
                    }
                    for position, token in enumerate(line.tokens)
                ]
            else:
                vector = pool(line, config.pooling, config.layer_combination)
                record["values"] = np.round(vector, 6).tolist()
            file.write(json_text(record, ensure_ascii=False) + "\n")
