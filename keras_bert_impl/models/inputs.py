"""A model's inputs: their names, defaults for those left out, and the longest text."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError, shown

OTHER_NAMES = {"attention_mask": "input_mask", "token_type_ids": "segment_ids"}  # Hugging Face's
_NEARLY = 0.85  # likeness from which a name is another one mistyped


def complete_inputs(inputs: Any, names: Sequence[str], config: BertConfig) -> dict[str, Any]:
    """Gives a model's inputs by their own names, with defaults for what was left out.

    `attention_mask` and `token_type_ids`, as Hugging Face calls them, are understood. Where there
    is no mask, every id but that of [PAD] counts (`transformers` takes ones there, which differs
    only for padded texts, where it warns). Where there are no segments, they are zeros.

    Inputs are a dict of int [..., length] arrays or tensors, or the `input_ids` alone. Names that
    the model does not know are left aside, so that a whole batch, labels included, can be given.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
        >>> config = BertConfig(vocab_size=10)
        >>> complete = complete_inputs({"input_ids": np.array([[2, 5, 3, 0]])},
        ...                            ENCODER_INPUTS, config)
        >>> np.array(complete["input_mask"]).tolist(), np.array(complete["segment_ids"]).tolist()
        ([[1, 1, 1, 0]], [[0, 0, 0, 0]])
    """
    given = _by_own_names(inputs if isinstance(inputs, Mapping) else {"input_ids": inputs})
    _check_names(given, names)
    sizes = (config.vocab_size, 2, config.type_vocab_size, config.max_position_embeddings)
    given = {
        name: _as_tensor(name, given[name], size, given["input_ids"])
        for name, size in zip(names, sizes, strict=False)
        if name in given
    }
    ids = given["input_ids"]
    _check_length(ids.shape[-1], config.max_position_embeddings)
    if "input_mask" not in given:
        padding = config.extra.get("pad_token_id") or 0  # null in some files: BERT's [PAD] is 0
        given["input_mask"] = ops.cast(ops.not_equal(ids, padding), "int32")
    if "segment_ids" not in given:
        given["segment_ids"] = ops.zeros_like(ids)
    return {name: given[name] for name in names}


def _by_own_names(inputs: Mapping[str, Any]) -> dict[str, Any]:
    given = {OTHER_NAMES.get(name, name): value for name, value in inputs.items()}
    return {name: value for name, value in given.items() if value is not None}


def _is_tensor(value: Any) -> bool:
    # Keras' own symbolic tensors are none for `ops.is_tensor`.
    return isinstance(value, keras.KerasTensor) or ops.is_tensor(value)


def _as_tensor(name: str, value: Any, size: int, ids: Any) -> Any:
    """A tensor as it is; one of an array or a list, if the model has a vector for each number."""
    if _is_tensor(value):
        return value
    try:
        array = np.asarray(value)
        alike = name == "masked_lm_positions" or _is_tensor(ids) or array.shape == np.shape(ids)
        fits = alike and array.ndim and ((array >= 0) & (array < size) & (array % 1 == 0)).all()
    except (TypeError, ValueError):  # words, or rows of different lengths
        fits = False
    if not fits:
        each = "" if name == "masked_lm_positions" else ", one for each id"
        wanted = f"whole numbers from 0 to {size - 1} in rows of one length{each}"
        raise UserError(f"{name} is {shown(value)}; give {wanted}.")
    return ops.convert_to_tensor(array.astype("int32"), "int32")


def _check_names(given: Mapping[str, Any], names: Sequence[str]) -> None:
    if "inputs_embeds" in given:
        raise UserError("inputs_embeds: the models here take ids only; give input_ids.")
    known = [*names, *OTHER_NAMES]
    for name in (name for name in given if name not in known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=_NEARLY)
        if near:
            raise UserError(f"{name!r} is no input of the model; {near[0]!r} is.")
    missing = [n for n in names if n not in given and n not in ("input_mask", "segment_ids")]
    if missing:
        wanted = f"a dict with {', '.join(names)} (input_mask and segment_ids may be left out)"
        raise UserError(f"the model's input {missing[0]!r} is missing; give {wanted}.")


def _check_length(length: int | None, most: int) -> None:
    if length is not None and length > most:
        raise UserError(
            f"the inputs are {length} tokens long, but the model has {most} positions "
            f"(max_position_embeddings); truncate the texts to max_seq_length={most}."
        )
