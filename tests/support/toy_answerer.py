"""An answerer without a model, for servers: it counts characters, and can be slow."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import (
    Answer,
    Input,
    Instance,
    Prepared,
    Row,
    RowOutputs,
    collate,
)


@dataclass
class ToyAnswerer:
    """Gives each text's number of characters as its `score`.

    Attributes:
        seconds: how long a batch takes.
        sizes: the rows of each batch that was computed.
    """

    seconds: float = 0.0
    signature: str = "text"
    kind: str = "number"
    inputs: Sequence[Input] = (Input("text", about="a text"),)
    options: Sequence[Input] = ()
    outputs: Mapping[str, str] = field(default_factory=lambda: {"score": "its characters"})
    tokens_at_once: int = 64
    batches_at_once: int = 1
    most_tokens: int = 64
    sizes: list[int] = field(default_factory=list)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """A row of code points for each text."""
        for number, instance in enumerate(instances, start=1):
            if not isinstance(instance.get("text"), str):
                raise UserError(f"instance {number}: has no `text`; give a text.")
        ids = [np.array([*map(ord, instance["text"])], np.int32) for instance in instances]
        return Prepared([{"input_ids": row, "input_mask": row * 0 + 1} for row in ids])

    def compute(self, rows: Sequence[Row]) -> Sequence[RowOutputs]:
        """The sum of each row's mask."""
        time.sleep(self.seconds)
        self.sizes.append(len(rows))
        return [{"sum": total} for total in collate(rows)["input_mask"].sum(axis=-1)]

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """The sums as they are."""
        del prepared
        return [{"score": float(output["sum"])} for output in outputs]


class ToyVectors(ToyAnswerer):
    """Gives each text a vector of two numbers: its characters, and always the same."""

    def __init__(self, value: float = 0.5) -> None:
        super().__init__(signature="embed", kind="vector", outputs={"embedding": "a vector"})
        self.value = value

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """The sums, and the value."""
        del prepared
        return [{"embedding": [float(one["sum"]), self.value]} for one in outputs]


@dataclass
class ToyModel:
    """A model with one toy answerer."""

    answerers: Mapping[str, Any] = field(default_factory=lambda: {"text": ToyAnswerer()})
    description: Mapping[str, Any] = field(default_factory=lambda: {"kind": "toy"})
    closed: bool = False

    def close(self) -> None:
        """Remembers it."""
        self.closed = True
