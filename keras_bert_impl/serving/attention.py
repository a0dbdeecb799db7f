"""The attention of texts in a trained model, token by token."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.engines.engine import check_finite
from keras_bert_impl.engines.kept_graph import UnbuiltModel
from keras_bert_impl.engines.open_engine import open_engine
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath
from keras_bert_impl.serving.exported import is_openvino_export
from keras_bert_impl.serving.opened_model import lacks
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS, pack_batch
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.reference import as_name
from keras_bert_impl.tokenization.vocabulary import Vocabulary

Batch = Mapping[str, NDArray[np.int32]]
_MOST_PROBABILITIES = 10_000_000  # 20 MB as a page holds them


@dataclass(frozen=True)
class TextAttention:
    """How the tokens of a row attend to each other: float32 [layers, heads, from, to]."""

    tokens: tuple[str, ...]
    segments: tuple[int, ...]
    probabilities: NDArray[np.float32]


class AttentionModel:
    """An encoder that gives its attention to several threads; it is opened when first asked."""

    def __init__(self, source: ModelSource, engine: str = TENSORFLOW) -> None:
        self._source, self._engine_name, self._lock = source, engine, threading.Lock()
        self._compute: Callable[[Batch], NDArray[np.float32]] | None = None

    @classmethod
    def open(
        cls, path_or_name: StrPath, *, engine: str = TENSORFLOW, **description: Any
    ) -> "AttentionModel":
        """Finds a model, in any form that has its weights by their names."""
        if is_openvino_export(Path(path_or_name)):
            fault = "is an export, which gives its outputs and not its attention"
            raise UserError(f"{path_or_name}: {fault}; name the model directory that it is of.")
        return cls(find_model(path_or_name, **description), engine)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._source.text.vocabulary

    def of_texts(self, texts: Sequence[str | tuple[str, str]]) -> list[TextAttention]:
        longest = self._source.config.max_position_embeddings
        rows = []
        for number, text in enumerate(texts, start=1):
            pair = text if isinstance(text, tuple) else (text, "")
            block = self._tokenizer.encode_lines(pair)
            first, second = np.split(block.ids, block.offsets[1:-1])
            # One more than there are positions: a text that is too long is noticed below.
            packed = pack_batch([first], [second], self.vocabulary, longest + 1)
            row = {name: array[0] for name, array in packed.items()}
            self.check_length(row["input_ids"].shape[-1], f"text {number}")
            rows.append(row)
        self._source.config.check_segments(row["segment_ids"] for row in rows)
        return [self.of_row(row) for row in rows]

    def of_row(self, row: Mapping[str, NDArray[np.int32]]) -> TextAttention:
        """The attention of a row: int32 [length] by the names of the encoder's inputs."""
        self.check_length(row["input_ids"].shape[-1], "the text")
        batch = {name: row[name][None] for name in ENCODER_INPUTS}
        with self._lock:
            self._compute = self._compute or self._opened()
            probabilities = self._compute(batch)
        check_finite({"attention": probabilities}, self._source.checkpoint)
        tokens = tokens_of(row["input_ids"], self.vocabulary)
        return TextAttention(tokens, tuple(row["segment_ids"].tolist()), probabilities)

    def check_length(self, length: int, what: str) -> None:
        """Refuses a row with more tokens than the model reads or a page can show."""
        config = self._source.config
        heads = config.num_hidden_layers * config.num_attention_heads
        most = min(int((_MOST_PROBABILITIES / heads) ** 0.5), config.max_position_embeddings)
        if length > most:
            limit = f"the {most} tokens whose attention can be shown"
            raise UserError(f"{what} has more than {limit}; shorten it.")

    def _opened(self) -> Callable[[Batch], NDArray[np.float32]]:
        """What computes [layers, heads, from, to] of a batch of one row."""
        if self._engine_name == TENSORFLOW:
            from keras_bert_impl.models.inner_outputs import attention_probabilities

            encoder = self._built()
            return lambda batch: attention_probabilities(encoder, batch)[:, 0]
        unbuilt = UnbuiltModel(self._outputs, self._source, "Attention")
        engine = open_engine(unbuilt, self._engine_name, folder=self._source.folder)
        return lambda batch: engine.compute_one(batch)["attention"][0]

    def _outputs(self) -> Any:
        from keras_bert_impl.models.inner_outputs import AttentionOutputs

        return AttentionOutputs(self._built())

    def _built(self) -> Any:
        from keras_bert_impl.models.encoder import BertEncoder

        encoder = BertEncoder(self._source.config, dtype="float32")
        restore(encoder, self._source.tensors())
        return encoder

    @functools.cached_property
    def _tokenizer(self) -> PlainTokenizer:
        """Cuts texts as for the model's own answers."""
        kept: Any = "keep"
        if lacks(self._source, "masked_lm"):
            kept = task_settings(self._source.config).get("special_tokens", "split")
        return PlainTokenizer(self._source.text, kept)


def tokens_of(ids: NDArray[np.integer], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Ids as people read them: the tokens, composed (a decomposed Hangul syllable is one again).

    Example:
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe\u0301"]
        >>> tokens_of(np.array([2, 5, 3]), Vocabulary(words))
        ('[CLS]', 'café', '[SEP]')
    """
    return tuple(as_name(vocabulary.tokens[number]) for number in ids.tolist())
