"""What an answerer asks a model and makes of its numbers, and the engine that computes them.

A `Form` knows texts and answers but no engine; `EngineAnswerer` adds one. The forms that need no
task stand here: vectors, masked words, next sentences. Those of tasks stand with their tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.engine import Engine, NotFiniteError, check_finite
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.serving.answerer import (
    Answer,
    Input,
    Instance,
    Prepared,
    Row,
    RowOutputs,
    asked_otherwise,
    collate,
)
from keras_bert_impl.serving.exported import ExportedModel, room_of
from keras_bert_impl.serving.smaller_vectors import FLOAT32, UBINARY, quantized, truncated
from keras_bert_impl.serving.token_batches import rounded_length, rounded_rows
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS, pack_batch, text_ids
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer

KnownModel = ModelSource | ExportedModel
"""All that is known of a model but its numbers."""


class Form(ABC):
    """Turns instances into rows and the model's outputs for them into answers.

    The attributes that `Answerer` has mean the same here. It is asked of one instance at least.

    Attributes:
        model_outputs: the outputs of the model that are read.
        token_outputs: those of them with a number, or several, for each position of a row.
        max_seq_length: the most tokens of a row.
        most_tokens: the most tokens of what is cut, where that is not the row.
        most_answers: how many answers are found, where they are several.
        has_windows: whether a long text is read in windows.
    """

    signature: str
    kind: str
    inputs: Sequence[Input]
    options: Sequence[Input] = ()
    outputs: Mapping[str, str]
    model_outputs: Sequence[str]
    token_outputs: Collection[str] = ()
    max_seq_length: int
    most_tokens: int | None = None
    most_answers: int | None = None
    has_windows = False

    @abstractmethod
    def prepare(self, instances: Sequence[Instance]) -> Prepared: ...

    def reduced(self, outputs: RowOutputs) -> RowOutputs:
        """What `finish` needs of a row's outputs, where that is less."""
        return outputs

    @abstractmethod
    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]: ...


class EngineAnswerer:
    """Answers by an engine; see `Answerer`."""

    def __init__(
        self,
        form: Form,
        engine: Engine,
        config: BertConfig,
        deterministic: bool = False,
        origin: str = "the model",
        refuses_long: bool = False,
    ) -> None:
        self._form, self._engine, self._config = form, engine, config
        self._origin, self._refuses_long = origin, refuses_long
        self.signature, self.kind = form.signature, form.kind
        self.inputs, self.options, self.outputs = form.inputs, form.options, form.outputs
        self.most_tokens = form.most_tokens or form.max_seq_length
        self.tokens_at_once = 1 if deterministic else engine.tokens_at_once
        self.batches_at_once = engine.batches_at_once

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        prepared = self._form.prepare(instances) if instances else Prepared([])
        self._config.check_segments(row["segment_ids"] for row in prepared.rows)
        for number, cut in enumerate(prepared.num_truncated, start=1):
            if self._refuses_long and cut:
                raise UserError(
                    f"instance {number}: is a text of {self.most_tokens + cut} tokens, and the "
                    f"model reads {self.most_tokens}; shorten it, or give `long_text=truncate`."
                )
        return prepared

    def compute(self, rows: Sequence[Row]) -> list[RowOutputs]:
        features = collate(rows)
        if self._engine.few_lengths:
            features = _of_few_shapes(features, self._config.max_position_embeddings)
        found = self._engine.compute_one(features)
        return [self._of_row(found, number, row) for number, row in enumerate(rows)]

    def _of_row(self, found: Mapping[str, NDArray], number: int, row: Row) -> RowOutputs:
        length = row[ENCODER_INPUTS[0]].shape[-1]
        outputs = {name: found[name][number] for name in self._form.model_outputs}
        for name in self._form.token_outputs:
            outputs[name] = outputs[name][:length]
        try:
            check_finite(outputs, self._origin)
        except NotFiniteError as error:  # of this row alone: others in the batch are answered
            return _NotFinite(error)
        return self._form.reduced(outputs)

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        for one in outputs:
            if isinstance(one, _NotFinite):
                raise one.error
        return self._form.finish(prepared, outputs) if outputs else []


class _NotFinite(dict[str, NDArray]):
    """In place of the outputs of a row that are not finite."""

    def __init__(self, error: NotFiniteError) -> None:
        super().__init__()
        self.error = error


def _of_few_shapes(
    features: Mapping[str, NDArray[np.int32]], positions: int
) -> dict[str, NDArray[np.int32]]:
    """Fills a batch up, so that few different shapes are compiled; what is added has one token."""
    rows = len(features[ENCODER_INPUTS[0]])
    more = rounded_rows(rows) - rows
    filled = {}
    for name, array in features.items():
        longer = min(rounded_length(array.shape[-1]), positions) - array.shape[-1]
        borders = [(0, more), *[(0, 0)] * (array.ndim - 2), (0, max(longer, 0))]
        filled[name] = np.pad(array, borders)
    filled["input_mask"][rows:, ..., 0] = 1
    return filled


def read_fields(
    fields: Sequence[Input], instances: Sequence[Instance], options: Sequence[Input] = ()
) -> dict[str, list[Any]]:
    """The texts of instances by the names of their fields; None where one is left out.

    Example:
        >>> read_fields([Input("text")], [{"text": "It rains."}])
        {'text': ['It rains.']}
        >>> read_fields([Input("text")], [{"text": 5}])
        Traceback (most recent call last):
        keras_bert_impl.errors.UserError: instance 1: `text` is 5; give a text.
    """
    for number, instance in enumerate(instances, start=1):
        _check_instance(fields, options, instance, number)
    names = [field.name for field in (*fields, *options)]
    return {name: [one.get(name) for one in instances] for name in names}


def _check_instance(
    fields: Sequence[Input], options: Sequence[Input], instance: Any, number: int
) -> None:
    names = [field.name for field in (*fields, *options)]
    if not isinstance(instance, Mapping):
        wanted = f"an object with {', '.join(names)}"
        raise UserError(f"instance {number}: is {shown(instance)}; give {wanted}.")
    missing = {one.name for one in fields if one.needed and instance.get(one.name) is None}
    if missing or not set(instance) <= set(names):
        given = " and ".join(shown(name)[1:-1] for name in instance if instance[name] is not None)
        raise asked_otherwise(f"instance {number}", given or "nothing", fields)
    for field in (*fields, *options):
        value = instance.get(field.name)
        if field.is_number:
            right, wanted = type(value) is int, "a whole number"
        elif field.is_list:
            right = isinstance(value, list | tuple) and all(isinstance(x, str) for x in value)
            wanted = "a list of texts"
        else:
            right, wanted = isinstance(value, str), "a text"
        if value is not None and not right:
            raise UserError(f"instance {number}: `{field.name}` is {shown(value)}; give {wanted}.")


def utf16_offsets(text: str, offsets: Sequence[int]) -> list[int]:
    """Positions of characters as positions in UTF-16, in which JavaScript, Java and C# count.

    Example:
        >>> utf16_offsets("😀 Ada", [0, 2, 5])
        [0, 3, 6]
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    before = np.concatenate([[0], np.cumsum(codes > 0xFFFF)])
    return [offset + int(before[offset]) for offset in offsets]


class VectorForm(Form):
    """A vector a text; with `of_tokens` the mean of its tokens' vectors."""

    signature, kind = "embed", "vector"
    inputs = (Input("text", about="a text"),)
    options = (
        Input("input_type", needed=False, about="query, document or another prompt of the model"),
        Input("dimensions", needed=False, is_number=True, about="how many numbers are given"),
        Input("vector_type", needed=False, about="float32, or ubinary: a bit for each number"),
    )
    outputs: Mapping[str, str] = {"embedding": "the text's vector"}

    def __init__(
        self,
        model: KnownModel,
        sentence: SentenceSettings,
        max_seq_length: int,
        *,
        of_tokens: bool = False,
        any_size: bool = False,
    ) -> None:
        self._tokenizer, self._model = PlainTokenizer(model.text), model
        self.sentence, self._any_size, self.max_seq_length = sentence, any_size, max_seq_length
        self._room = room_of(model, max_seq_length)
        # Without [CLS] and [SEP] where the model has no room for them.
        self._read = slice(1, -1) if self._room == max_seq_length else slice(None)
        self.model_outputs = ("sequence_output",) if of_tokens else ("embedding",)
        self.token_outputs = self.model_outputs if of_tokens else ()

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        fields = read_fields(self.inputs, instances, self.options)
        texts, names, sizes, kinds = fields.values()
        for size in sizes:
            self._check_size(size)
        for kind in {*kinds} - {None, FLOAT32, UBINARY}:
            raise UserError(f"`vector_type` is {shown(kind)}; give {FLOAT32} or {UBINARY}.")
        pairs = zip(map(self.sentence.prompt_of, names), texts, strict=True)
        block = self._tokenizer.encode_lines([prompt + text for prompt, text in pairs])
        rows = text_ids(block, self._tokenizer.vocabulary, self._room + 2)
        cut = np.maximum(np.diff(block.offsets) - self._room, 0).tolist()
        state = list(zip(sizes, kinds, strict=True))
        return Prepared([_row(ids[self._read]) for ids in rows], state, cut)

    def _check_size(self, size: int | None) -> None:
        if size is None:
            return
        width = self._model.config.hidden_size
        known = sorted({*self.sentence.dimensions, width}, reverse=True)
        if size in known or (self._any_size and 0 < size < width):
            return
        raise UserError(
            f"`dimensions` is {size}, but the model's vectors have {' or '.join(map(str, known))} "
            "numbers; ask for these (others are for models opened with `truncate_anyway`)."
        )

    def reduced(self, outputs: RowOutputs) -> RowOutputs:
        """The mean of the tokens' vectors, where that is the text's."""
        if not self.token_outputs:
            return outputs
        (vectors,) = outputs.values()
        return {"embedding": vectors.astype(np.float32).mean(axis=0)}

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        answers = list[Answer]()
        for one, (size, kind) in zip(outputs, prepared.state, strict=True):
            vector = one["embedding"].astype(np.float32)
            vector = truncated(vector, size, self.sentence.normalize)
            answers.append({"embedding": quantized(vector, kind or FLOAT32).tolist()})
        return answers


def _row(ids: NDArray[np.int32]) -> dict[str, NDArray[np.int32]]:
    return dict(zip(ENCODER_INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))


class MaskedWordsForm(Form):
    """The words that may stand at [MASK].

    Of a text longer than `max_seq_length` the tokens around its first [MASK] are read.
    """

    signature, kind = "fill_mask_text", "masked_words"
    inputs = (Input("text", about="a text with [MASK] in it"),)
    outputs: Mapping[str, str] = {
        "tokens": "for each [MASK] the best words, the best one first",
        "probabilities": "theirs",
        "mask_counts": "how many masks were read",
        "num_truncated": "tokens of a long text that were not read",
    }
    model_outputs = ("masked_lm_logits",)

    def __init__(
        self, model: KnownModel, tokenizer: PlainTokenizer, max_seq_length: int, top_k: int
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, model.text.vocabulary
        self.max_seq_length, self._room = max_seq_length, max_seq_length - 2
        self._top_k = min(top_k, len(self._vocabulary))

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        block = self._tokenizer.encode_lines(read_fields(self.inputs, instances)["text"])
        texts = np.split(block.ids, block.offsets[1:-1])
        kept = [text[self._around_first_mask(text)] for text in texts]
        ends = [np.array([x], np.int32) for x in (self._vocabulary.cls_id, self._vocabulary.sep_id)]
        rows = [_row(np.concatenate([ends[0], text, ends[1]])) for text in kept]
        masks = [np.flatnonzero(row["input_ids"] == self._vocabulary.mask_id) for row in rows]
        cut = [len(text) - len(some) for text, some in zip(texts, kept, strict=True)]
        state = list(zip(map(len, masks), cut, strict=True))
        return Prepared([with_masks(*one) for one in zip(rows, masks, strict=True)], state, cut)

    def _around_first_mask(self, ids: NDArray[np.int32]) -> slice:
        masks = np.flatnonzero(ids == self._vocabulary.mask_id)
        first = int(masks[0]) if len(masks) else len(ids)
        start = min(max(first - self._room // 2, 0), max(len(ids) - self._room, 0))
        return slice(start, start + self._room)

    def reduced(self, outputs: RowOutputs) -> RowOutputs:
        """The best words of each position instead of the logits of the whole vocabulary."""
        # The table may have more rows than there are tokens: they mean nothing.
        logits = outputs["masked_lm_logits"][:, : len(self._vocabulary)].astype(np.float32)
        best = [_best(row, self._top_k) for row in logits]
        shares = softmax(logits)
        found = np.array([x[ids] for x, ids in zip(shares, best, strict=True)])
        return {"ids": np.array(best, np.int32), "probabilities": found}

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        tokens = self._vocabulary.tokens
        return [
            {
                "tokens": [[tokens[x] for x in ids] for ids in one["ids"][:masks].tolist()],
                "probabilities": one["probabilities"][:masks].tolist(),
                "mask_counts": masks,
                "num_truncated": cut,
            }
            for (masks, cut), one in zip(prepared.state, outputs, strict=True)
        ]


def with_masks(row: Row, masks: NDArray[np.integer]) -> dict[str, NDArray[np.int32]]:
    """A row of a model that predicts masked words; one position at least is predicted."""
    positions = masks.astype(np.int32) if len(masks) else np.zeros(1, np.int32)
    return {**row, "masked_lm_positions": positions}


def _best(logits: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The numbers of the highest logits, the first of equal ones first.

    Example:
        >>> _best(np.array([1, 3, 2, 3, 2], np.float32), 3).tolist()
        [1, 3, 2]
    """
    least = np.partition(logits, len(logits) - count)[len(logits) - count]
    candidates = np.flatnonzero(logits >= least)
    order = np.argsort(-logits[candidates], kind="stable")
    return candidates[order][:count]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities along the last dimension, float32."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class NextSentenceForm(Form):
    """Whether a text follows another one."""

    signature, kind = "next_sentence_text", "next_sentence"
    inputs = (Input("text_a", about="a text"), Input("text_b", about="what may follow"))
    outputs: Mapping[str, str] = {
        "probability": "that the second text follows the first one",
        "next_sentence_logits": "of following, and of not following",
    }
    model_outputs = ("next_sentence_logits",)

    def __init__(self, model: KnownModel, tokenizer: PlainTokenizer, max_seq_length: int) -> None:
        self._tokenizer, self._vocabulary = tokenizer, model.text.vocabulary
        self.max_seq_length = max_seq_length

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        fields = read_fields(self.inputs, instances)
        blocks = [self._tokenizer.encode_lines(fields[one.name]) for one in self.inputs]
        pairs = zip(*(np.split(one.ids, one.offsets[1:-1]) for one in blocks), strict=True)
        rows = list[Row]()
        for first, second in pairs:
            packed = pack_batch([first], [second], self._vocabulary, self.max_seq_length)
            row = {name: array[0] for name, array in packed.items()}
            rows.append(with_masks(row, np.zeros(0, np.int32)))
        first, second = (np.diff(one.offsets) for one in blocks)
        needed = first + second + 2 + (second > 0)
        cut = np.maximum(needed - self.max_seq_length, 0).tolist()
        return Prepared(rows, None, cut)

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        del prepared
        logits = [one["next_sentence_logits"].astype(np.float32) for one in outputs]
        return [
            {"probability": float(softmax(one)[0]), "next_sentence_logits": one.tolist()}
            for one in logits
        ]
