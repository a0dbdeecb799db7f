"""The contract of whatever answers: instances in, rows of token ids, a computed batch, answers out.

A command, a Python call, an HTTP server and a page all ask the same object, so that each gives the
same answer. The three steps stand apart because a server computes the rows of several requests in
one batch:

```
prepare(instances)         → rows, and what undoes them (windows, offsets)   one request
compute(rows)              → the model's outputs, row by row                 any requests' rows
finish(prepared, outputs)  → one answer an instance, as JSON values          one request
```

An answer has the names of the outputs of the SavedModel's signature (see the README of this room),
unpadded: `label`, `probabilities`; `answer`, `start`, `end`, `score`; lists of entities; `tokens`.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.token_batches import token_batches

_LOGGER = logging.getLogger(__name__)
_INSTANCE = re.compile(r"instance (\d+): ")

Instance = Mapping[str, Any]
"""The texts of one thing that is asked, by the names of the answerer's inputs."""

Row = Mapping[str, NDArray[np.int32]]
"""The model's inputs for one row: int32 [length] each; of choices, int32 [choices, length]."""

RowOutputs = Mapping[str, NDArray]
"""The model's outputs for one row, without padding."""

Answer = dict[str, Any]
"""JSON values by name."""

NUM_TRUNCATED = "num_truncated"
"""What an answer says of a text that was longer than the model reads: the tokens left out."""

TRUNCATE, REFUSE, WINDOWS = "truncate", "refuse", "windows"
"""What becomes of a text that is longer than the model reads."""


@dataclass(frozen=True)
class Prepared:
    """What is asked, in the form that a model reads.

    Attributes:
        rows: one or more for each instance, in their order.
        state: what `finish` needs to undo them.
        num_truncated: of each instance the tokens that are in no row; () where all are.
    """

    rows: Sequence[Row]
    state: Any = None
    num_truncated: Sequence[int] = ()


@dataclass(frozen=True)
class Input:
    """A field of an instance."""

    name: str
    is_list: bool = False
    needed: bool = True
    is_number: bool = False
    about: str = ""


class Answerer(Protocol):
    """Answers one kind of question with one model.

    All methods may be called by several threads at once.

    Attributes:
        signature: its name among those of the model; the same as of the SavedModel's signature.
        kind: what it gives: "label", "labels", "number", "answer", "entities", "choice",
            "masked_words", "next_sentence" or "vector".
        inputs: the fields of an instance, the main one first. A bare text in place of an instance
            is its first field.
        options: fields that say how an instance is answered; none is needed.
        outputs: the fields of an answer, and what each is, in a few words.
        tokens_at_once: how many positions a batch should have.
        batches_at_once: how many batches are worth computing at the same time.
        most_tokens: how long a text may be that is read whole, [CLS] and [SEP] included; of
            questions, whose passages are read in windows, the question.
    """

    signature: str
    kind: str
    inputs: Sequence[Input]
    options: Sequence[Input]
    outputs: Mapping[str, str]
    tokens_at_once: int
    batches_at_once: int
    most_tokens: int

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """Cuts texts into tokens, and packs them into rows.

        Raises:
            UserError: an instance is not what the model answers; the sentence says which one,
                counted from 1.
        """

    def compute(self, rows: Sequence[Row]) -> Sequence[RowOutputs]:
        """Computes rows in one batch, padded to the longest of them."""

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """Makes one answer of the outputs of each instance's rows."""


class AnsweringModel(Protocol):
    """An open model with all that it answers."""

    @property
    def answerers(self) -> Mapping[str, Answerer]:
        """Who answers, by signature, the default one first."""

    @property
    def description(self) -> Mapping[str, Any]:
        """What people want to know of it, as JSON values; never a path of the machine."""

    def close(self) -> None:
        """Lets the engine go; nothing may be computed afterwards."""


def ask(answerer: Answerer, instances: Sequence[Instance]) -> list[Answer]:
    """Answers instances without others beside them; of a text which was cut with `NUM_TRUNCATED`.

    Rows of like length are computed together, and as many batches at the same time as the answerer
    likes.
    """
    prepared = answerer.prepare(instances)
    outputs: dict[int, RowOutputs] = {}
    lengths = np.array([row_length(row) for row in prepared.rows], np.int64)
    found = token_batches(lengths, answerer.tokens_at_once, few_lengths=False)
    batches = [numbers.tolist() for numbers, _ in found]

    def compute(numbers: list[int]) -> None:
        computed = answerer.compute([prepared.rows[number] for number in numbers])
        outputs.update(zip(numbers, computed, strict=True))

    threads = min(len(batches), answerer.batches_at_once)
    if threads <= 1:
        for numbers in batches:
            compute(numbers)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(compute, batches))  # raises what a batch raises
    answers = answerer.finish(prepared, [outputs[number] for number in range(len(lengths))])
    for answer, count in zip(answers, prepared.num_truncated, strict=False):
        answer.update({NUM_TRUNCATED: count} if count else {})
    return answers


def log_left_out(where: object, texts: int, *, empty: int, cut: int, most: int) -> None:
    """Says of all texts of a run, a line each, how many were empty, and how many were cut."""
    if empty:
        _LOGGER.warning(
            f"{where}: {empty} of {texts} texts are empty; each is answered as it is, so that "
            "answers and texts have one order."
        )
    if cut:
        _LOGGER.warning(
            f"{where}: {cut} of {texts} texts are longer than the {most} tokens that the model "
            "reads; their ends are not read."
        )


def row_length(row: Row) -> int:
    """The positions that a row takes in a batch of its like: its tokens, of choices all of them."""
    return int(row["input_ids"].size)


def collate(rows: Sequence[Row]) -> dict[str, NDArray[np.int32]]:
    """Stacks rows, padded with 0 to the longest: int32 [rows, ..., longest] by name.

    Example:
        >>> rows = [{"input_ids": np.array(ids, np.int32)} for ids in ([5], [6, 7])]
        >>> collate(rows)["input_ids"].tolist()
        [[5, 0], [6, 7]]
    """
    return {name: _stacked([row[name] for row in rows]) for name in rows[0]}


def _stacked(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    longest = max(array.shape[-1] for array in arrays)
    stacked = np.zeros((len(arrays), *arrays[0].shape[:-1], longest), np.int32)
    for line, array in zip(stacked, arrays, strict=True):
        line[..., : array.shape[-1]] = array
    return stacked


class HasInputs(Protocol):
    """What instances are of: an answerer, or what makes one."""

    inputs: Sequence[Input]


_Asked = TypeVar("_Asked", bound=HasInputs)


def default_first(names: Iterable[str]) -> list[str]:
    """The names of signatures, those that every door asks by default first.

    Example:
        >>> default_first(["text", "text_pair", "raw_text"])
        ['raw_text', 'text', 'text_pair']
    """
    return sorted(names, key=lambda name: name not in ("embed", "raw_text", "serving_default"))


def asked_answerer(
    answerers: Mapping[str, _Asked], asked: Iterable[Any] = (), signature: str | None = None
) -> _Asked:
    """The answerer that is asked: the one of `signature`, else the first that all of it fits.

    Where nothing fits it is the default, which then says what it is asked with (`read_fields`).
    """
    if signature is not None:
        if signature in answerers:
            return answerers[signature]
        known = ", ".join(answerers)
        raise UserError(f"`signature={signature}` does not exist here; choose {known}.")
    asked = list(asked)
    fitting = (one for one in answerers.values() if all(fits(one, some) for some in asked))
    return next(fitting, next(iter(answerers.values())))


def instances_of(answerer: HasInputs, texts: Sequence[Any]) -> list[Instance]:
    """Texts, pairs of texts or instances as instances."""
    names = [field.name for field in answerer.inputs]
    for number, text in enumerate(texts, start=1):
        if isinstance(text, tuple) and len(text) > len(names):
            raise asked_otherwise(f"instance {number}", f"{len(text)} texts", answerer.inputs)
    rows = (text if isinstance(text, Mapping | tuple) else (text,) for text in texts)
    return [x if isinstance(x, Mapping) else dict(zip(names, x, strict=False)) for x in rows]


def asked_otherwise(where: str, given: str, inputs: Sequence[Input]) -> UserError:
    """What is said of an instance with other texts than a model is asked with.

    Example:
        >>> print(asked_otherwise("instance 1", "text", [Input("text_a"), Input("text_b")]))
        instance 1: has text, but this model is asked with text_a and text_b; give these.
    """
    wanted = " and ".join(one.name for one in inputs)
    return UserError(f"{where}: has {given}, but this model is asked with {wanted}; give these.")


def named_otherwise(error: UserError, name: Callable[[int], str]) -> UserError:
    """What is wrong with an instance, called by another `name`; given is its number from 0.

    Example:
        >>> print(named_otherwise(UserError("instance 2: is 5."), ["a:1", "a:7"].__getitem__))
        a:7: is 5.
    """
    found = _INSTANCE.match(str(error))
    if found is None:
        return error
    return UserError(f"{name(int(found[1]) - 1)}: {str(error)[found.end() :]}")


def fits(answerer: HasInputs, asked: Any) -> bool:
    """Whether something has an answerer's inputs: by their names, else as many texts."""
    if isinstance(asked, Mapping):
        return set(asked) == {one.name for one in answerer.inputs}
    return (len(asked) if isinstance(asked, tuple) else 1) == len(answerer.inputs)
