"""Filling in masked words with a SavedModel or a model directory."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.sources import is_saved_model
from keras_bert_impl.checkpoints.text_files import text_in_assets
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import text_lines
from keras_bert_impl.serving.config import FillMaskConfig
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import MASK

SIGNATURE = "fill_mask_text"
Signature = Callable[[Sequence[str]], Mapping[str, Any]]
_BATCH = 32


@dataclass(frozen=True)
class Candidate:
    """A token that may stand at a masked position, with its probability."""

    token: str
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text with [MASK] in it, and what may stand there.

    Attributes:
        text: as it was given.
        masks: for each [MASK] the model saw, the best tokens, the best first.
        num_truncated: tokens of a long text that the model did not see.
    """

    text: str
    masks: list[list[Candidate]]
    num_truncated: int


class GivenText(NamedTuple):
    """A text, and where it stands for messages.

    Attributes:
        text: as it was given.
        where: a file and a line, or the number of a text of `text`.
    """

    text: str
    where: str


def read_texts(config: FillMaskConfig) -> list[GivenText]:
    r"""The texts that are given and those of the file, without empty lines.

    Raises:
        UserError: there are none, or the file is not UTF-8.

    Example:
        >>> read_texts(FillMaskConfig(model="", text=["a [MASK]\n\nb [MASK]", "[MASK]"]))
        [GivenText(text='a [MASK]', where='`text` 1, line 1'), GivenText(text='b [MASK]',
        where='`text` 1, line 3'), GivenText(text='[MASK]', where='`text` 2')]
    """
    texts = [one for one in _given_texts(config) if one.text.strip()]
    if not texts:
        raise UserError("there is no text; give `text` or an `input_file` with text.")
    return texts


def _given_texts(config: FillMaskConfig) -> Iterator[GivenText]:
    for number, text in enumerate(config.text, start=1):
        where = "`text`" if len(config.text) == 1 else f"`text` {number}"
        lines = text.replace("\r\n", "\n").split("\n")
        for line_number, line in enumerate(lines, start=1):
            yield GivenText(line, where + (f", line {line_number}" if len(lines) > 1 else ""))
    for line_number, line in enumerate(
        text_lines(config.input_file, stream=True) if config.input_file else (), 1
    ):
        yield GivenText(line, f"{config.input_file}: line {line_number}")


class FillMask:
    """Answers what may stand at [MASK].

    Args:
        signature: `fill_mask_text` of a served model: texts to a dict of tensors.
        text: how the model cuts texts; None where that is not known.

    Example:
        >>> import tensorflow as tf
        >>> answer = {"tokens": tf.constant([[["word"]]]), "probabilities": tf.constant([[[0.5]]]),
        ...           "mask_counts": tf.constant([1]), "num_truncated": tf.constant([0])}
        >>> FillMask(lambda texts: answer).fill(["a [MASK]"], top_k=1)[0].masks
        [[Candidate(token='word', probability=0.5)]]
    """

    def __init__(self, signature: Signature, text: TextSettings | None = None) -> None:
        self._signature, self.text = signature, text

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        top_k: int,
        *,
        trust_saved_model: bool = False,
        **description: Any,
    ) -> "FillMask":
        """Loads a SavedModel, or a model with a masked-LM head in any form.

        Args:
            path: the SavedModel's folder, or what `find_model` understands.
            top_k: how many tokens will be asked for.
            trust_saved_model: load a SavedModel, which is a program that can do anything.
            description: what `open_model` takes of what the model does not say of itself.

        Raises:
            UserError: it is neither or not trusted, or it cannot fill in words.
        """
        if is_saved_model(path):
            import tensorflow as tf

            from keras_bert_impl.serving.signatures import load_signature

            loaded = load_signature(
                Path(path),
                SIGNATURE,
                "a model with a masked-LM head",
                trusted=trust_saved_model,
                answers=("tokens", "probabilities", "mask_counts", "num_truncated"),
            )
            signature = lambda texts: loaded(text=tf.constant(texts))  # noqa: E731
            return cls(signature, text_in_assets(Path(path)))
        return cls(*_serve_model(path, top_k, description))

    def fill(self, texts: Sequence[str], top_k: int) -> list[FilledText]:
        """Gives the best tokens for every [MASK] of every text.

        Args:
            texts: each with at least one [MASK].
            top_k: how many tokens a mask gets.

        Raises:
            UserError: a text has no [MASK], or the SavedModel gives fewer than `top_k` tokens.
        """
        for text in texts:
            if MASK not in text:
                raise UserError(
                    f"'{shortened(text)}' has no {MASK}; write {MASK} for the word to find."
                )
        filled: list[FilledText] = []
        for start in range(0, len(texts), _BATCH):
            filled += self._fill_batch(texts[start : start + _BATCH], top_k)
        return filled

    def _fill_batch(self, texts: Sequence[str], top_k: int) -> list[FilledText]:
        answer = {name: np.asarray(value) for name, value in self._signature(texts).items()}
        available = answer["tokens"].shape[-1]
        if top_k > available:
            raise UserError(
                f"`top_k={top_k}` is more than the {available} tokens that this model gives for a "
                "mask; ask for fewer, or export it with a larger `top_k`."
            )
        return [
            FilledText(
                text,
                [
                    [
                        Candidate(token.decode("utf-8"), float(probability))
                        for token, probability in zip(
                            answer["tokens"][row, mask, :top_k],
                            answer["probabilities"][row, mask, :top_k],
                            strict=True,
                        )
                    ]
                    for mask in range(answer["mask_counts"][row])
                ],
                int(answer["num_truncated"][row]),
            )
            for row, text in enumerate(texts)
        ]


def _serve_model(
    path: str | os.PathLike[str], top_k: int, description: dict[str, Any]
) -> tuple[Signature, TextSettings]:
    tensors = find_model(path, **description).tensors()
    if not all(tensors.find(names) for names in head_names("masked_lm")):
        raise no_head(path)
    # TensorFlow is loaded from here on: mistakes were told before.
    from keras_bert_impl.serving.export import serve_model
    from keras_bert_impl.serving.opened_model import open_model

    opened = open_model(path, **description)
    served = serve_model(opened, top_k=top_k)
    return lambda texts: served.call(SIGNATURE, {"text": texts}), opened.text


def no_head(path: str | os.PathLike[str]) -> UserError:
    """What is told of a model that fills in nothing."""
    return UserError(
        f"{path}: has no masked-LM head; name a pre-trained model, such as the model/ folder of a "
        "pre-training run."
    )


def shortened(text: str) -> str:
    """A text for a sentence."""
    return text if len(text) <= 60 else f"{text[:57]}..."
