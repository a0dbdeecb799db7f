"""Examples as they stand in somebody's files: texts, a label, and the line on which they begin."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.tasks.labelled_columns import Columns, Labelling, has_any
from pipelines.tasks.labelled_files import LabelledFile


class Labelled(NamedTuple):
    """One example of a file.

    Attributes:
        line: the line on which it begins.
        text_a: the first text.
        text_b: the second text, or None.
        label: its label as the heads understand it, or None.
    """

    line: int
    text_a: str
    text_b: str | None
    label: str | None


@dataclass(frozen=True)
class Source:
    """A file of examples with its columns known.

    Attributes:
        file: the file.
        columns: where its records have what.
        labelling: what its labels are; None: they are not read.
        ignored_labels: rows with these labels are left out.
    """

    file: LabelledFile
    columns: Columns
    labelling: Labelling | None
    ignored_labels: frozenset[str] = frozenset()

    def examples(self) -> Iterator[Labelled]:
        """Reads the examples from the beginning.

        Raises:
            UserError: a record is not what it should be; names the line.
        """
        file, labelling = self.file, self.labelling
        for record in file.records():
            label = None
            if labelling is not None:
                # Before it is read: it need not be of the kind that labels have here.
                ignored = self.ignored_labels
                if ignored and has_any(file, record, labelling.columns, ignored):
                    continue
                label = labelling.read(file, record)
            yield Labelled(record.line, *self.columns.read_texts(file, record), label)


def text_key(seed: int, text_a: str, text_b: str | None) -> int:
    """A hash of an example's texts: 8 bytes, equal on every machine.

    Example:
        >>> text_key(0, "a", "b") == text_key(0, "a", "b") != text_key(1, "a", "b")
        True
    """
    texts = f"{text_a}\0{'' if text_b is None else text_b}".encode("utf-8", "surrogatepass")
    key = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(texts, digest_size=8, key=key).digest(), "little")


def labels_in(labelling: Labelling | None, label: str) -> list[str]:
    """The single labels of a label.

    Example:
        >>> labels_in(Labelling("several", ("label",)), '["b", "a"]')
        ['b', 'a']
    """
    if labelling is None or labelling.kind == "number":
        return []
    return json.loads(label) if labelling.kind in ("several", "columns") else [label]


def is_empty(example: Labelled) -> bool:
    """Whether an example has no text at all."""
    return not example.text_a.strip() and not (example.text_b or "").strip()
