"""A SavedModel asked by its own signatures, which take texts and do all the rest.

Rows of several requests are computed together, so each instance is one row here: its text as JSON,
in code points, beside its tokens, by which a batch is measured.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.text_files import text_in_assets
from keras_bert_impl.engines.engine import KerasEngine
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_named
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, Row, RowOutputs
from keras_bert_impl.serving.clients import SETTINGS_FILE
from keras_bert_impl.serving.exported import read_settings
from keras_bert_impl.serving.forms import read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings

if TYPE_CHECKING:
    from keras_bert_impl.serving.signatures import LoadedSignatures

_KINDS = {
    "answers": "answer",
    "answer": "answer",
    "ending": "choice",
    "embedding": "vector",
    "mask_counts": "masked_words",
    "count": "entities",
    "label": "label",
    "labels": "labels",
    "probability": "next_sentence",
    "score": "number",
}
"""What a signature gives, by an output that only such signatures have; the first one counts."""

_COUNTED = {
    "mask_counts": ("tokens", "probabilities"),
    "answer_counts": ("answers", "starts", "ends", "scores"),
    "count": ("type", "text", "start", "end", "score"),
}
"""Outputs that are padded, by the output that says how many are real."""

_CHARACTERS_OF_A_TOKEN = 4


class SavedSignature:
    """Answers by a signature of a SavedModel; see `Answerer`.

    Args:
        inputs: its inputs, texts or lists of texts; of a list how many it has.
        text: how the model cuts texts; None where that is not known.
    """

    tokens_at_once, batches_at_once = KerasEngine.tokens_at_once, 1

    def __init__(
        self,
        name: str,
        kind: str,
        inputs: Mapping[str, int | None],
        outputs: Sequence[str],
        ask: Callable[..., Mapping[str, Any]],
        text: TextSettings | None = None,
    ) -> None:
        self.signature, self.kind = name, kind
        self.inputs: Sequence[Input] = [
            Input(one, is_list=count is not None) for one, count in inputs.items()
        ]
        self.outputs: Mapping[str, str] = dict.fromkeys(outputs, "as the SavedModel gives it")
        self._counts, self._ask = inputs, ask
        self._tokenizer = None if text is None else PlainTokenizer(text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        fields = read_fields(self.inputs, instances)
        for name, count in self._counts.items():
            for number, texts in enumerate(fields[name] if count else (), start=1):
                if len(texts) != count:
                    raise UserError(
                        f"instance {number}: `{name}` has {len(texts)} texts; this model takes "
                        f"{count}: give as many."
                    )
        return Prepared([self._row(instance) for instance in instances])

    def _row(self, instance: Instance) -> dict[str, NDArray[np.int32]]:
        texts = json.dumps({one.name: instance[one.name] for one in self.inputs})
        ids = self._ids([str(instance[one.name]) for one in self.inputs], len(texts))
        return {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "instance": np.frombuffer(texts.encode("utf-32-le"), "<i4").astype(np.int32),
        }

    def _ids(self, texts: Sequence[str], characters: int) -> NDArray[np.int32]:
        """The tokens of all texts, as far as they are known: how long it is counts."""
        if self._tokenizer is None:
            return np.zeros(max(1, characters // _CHARACTERS_OF_A_TOKEN), np.int32)
        vocabulary = self._tokenizer.vocabulary
        block = self._tokenizer.encode_lines(texts)
        parts = np.split(block.ids, block.offsets[1:-1])
        ids = [vocabulary.cls_id, *(x for part in parts for x in (*part, vocabulary.sep_id))]
        return np.array(ids, np.int32)

    def compute(self, rows: Sequence[Row]) -> list[RowOutputs]:
        """See `Answerer.compute`."""
        import tensorflow as tf

        asked = [bounded_loads(_text(row["instance"])) for row in rows]
        inputs = {
            one.name: tf.constant([_plain(instance[one.name]) for instance in asked])
            for one in self.inputs
        }
        found = {name: np.asarray(value) for name, value in self._ask(**inputs).items()}
        return [
            {name: values[number] for name, values in found.items()} for number in range(len(rows))
        ]

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """See `Answerer.finish`."""
        del prepared
        return [_answer(one) for one in outputs]


def _text(codes: NDArray[np.int32]) -> str:
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def _plain(value: Any) -> Any:
    return [*map(as_text, value)] if isinstance(value, list) else as_text(value)


def _answer(outputs: RowOutputs) -> Answer:
    """The outputs of a row as JSON values, without padding."""
    values = dict(outputs)
    for count, names in _COUNTED.items():
        if count in values:
            values |= {name: values[name][: int(values[count])] for name in names if name in values}
    answer = {name: _json(np.asarray(value).tolist()) for name, value in values.items()}
    if "labels" in answer:
        answer["labels"] = [label for label in answer["labels"] if label]
    return answer


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class SavedAnswers(NamedTuple):
    """What a SavedModel answers.

    Attributes:
        answerers: the signatures that take texts.
        text: how it cuts them; None where that is not known.
        labels: the names of its labels, where it has several.
    """

    answerers: Sequence[SavedSignature]
    text: TextSettings | None
    labels: Sequence[str]


def _labels_in_assets(folder: Path) -> Sequence[str]:
    assets = folder / "assets"
    has_settings = is_named(assets / SETTINGS_FILE)  # early exports have none
    return read_settings(assets).get("labels", ()) if has_settings else ()


def load_saved_answers(folder: Path, *, trusted: bool, deterministic: bool = False) -> SavedAnswers:
    """Loads a SavedModel of `export_saved_model`."""
    from keras_bert_impl.serving.signatures import load_signatures

    loaded, text = load_signatures(folder, trusted=trusted), text_in_assets(folder)
    outputs = loaded.outputs()
    found = [one for name in outputs if (one := _signature(loaded, outputs, name, text))]
    for one in found if deterministic else ():
        one.tokens_at_once = 1
    if not found:
        raise UserError(
            f"{folder}: has no signature that takes texts and answers them; export it again, or "
            "name the model directory."
        )
    found.sort(key=lambda one: _FIRST.get(one.signature, 9))
    return SavedAnswers(found, text, _labels_in_assets(folder))


def _signature(
    loaded: "LoadedSignatures",
    outputs: Mapping[str, frozenset[str]],
    name: str,
    text: TextSettings | None,
) -> SavedSignature | None:
    """A signature that takes texts and answers them; None where it does something else."""
    import tensorflow as tf

    specs, given = loaded.inputs(name), outputs[name]
    ask: Callable[..., Mapping[str, Any]] = loaded.ask(name)
    if not all(spec.dtype == tf.string for spec in specs.values()):
        return None
    if given >= _ENCODED and _EMBED not in outputs:
        name, ask, given = _EMBED, _pooled(ask), frozenset({"embedding"})
    kind = next((kind for one, kind in _KINDS.items() if one in given), None)
    if kind is None:
        return None
    inputs = {one: specs[one].shape[1] if specs[one].shape.rank > 1 else None for one in specs}
    ordered = {one: inputs[one] for one in sorted(inputs, key=_order_of_input)}
    return SavedSignature(name, kind, ordered, sorted(given), ask, text)


_EMBED = "embed"
_ENCODED = {"sequence_output", "input_mask"}


def _pooled(ask: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    """What a bare encoder says of texts, as vectors: the mean of their tokens, as in `embed`."""

    def embed(**texts: Any) -> Mapping[str, Any]:
        found = {name: np.asarray(value) for name, value in ask(**texts).items()}
        mask = found["input_mask"].astype(np.float32)[:, :, np.newaxis]  # [batch, length, 1]
        sums = (found["sequence_output"] * mask).sum(axis=1)  # [batch, hidden]
        return {"embedding": sums / np.maximum(mask.sum(axis=1), 1)}

    return embed


_FIRST = {"serving_default": 0, "embed": 1, "fill_mask_text": 2, "text": 3, "text_pair": 4}
_INPUTS = ("text", "text_a", "text_b", "question", "passage", "context", "endings")


def _order_of_input(name: str) -> int:
    return _INPUTS.index(name) if name in _INPUTS else len(_INPUTS)
