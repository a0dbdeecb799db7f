"""A model's outputs for the splits of a run, each computed once."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from keras_bert_impl.locks import scratch_folder
from pipelines.inputs.row_batches import BatchRows, RowEvaluation
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.row_set import RowSet
from pipelines.runs.engine_answers import Predicts
from pipelines.runs.ensemble import compute_outputs
from pipelines.tasks.task import Head

_LOGGER = logging.getLogger(__name__)


@dataclass
class SplitOutputs:
    """Computes outputs, and keeps those that are asked for again; leave it as a context manager.

    Attributes:
        folder: where files of outputs stand as long as they are needed.
        rows: the rows of each split.
        inputs: what the model reads of them.
        models: make what answers, one or several; see `compute_outputs`.
        head: says which outputs are of tokens.
        fixed_length: pads all batches to it; otherwise each to one of a few lengths.
    """

    folder: Path
    rows: Mapping[str, RowSet]
    inputs: Mapping[str, BatchRows]
    models: Sequence[Callable[[], Predicts]]
    head: Head
    fixed_length: int | None
    _kept: dict[str, RowOutputs] = field(default_factory=dict)
    _folders: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept.clear()
        self._folders.close()

    @contextmanager
    def of(self, split: str, batch_size: int, *, keep: bool = False) -> Iterator[RowOutputs]:
        """The outputs for a split, in files that are gone after the block.

        Args:
            split: its name.
            batch_size: rows computed at once.
            keep: the same outputs, of the same weights, will be asked for again.
        """
        if split in self._kept:
            yield self._kept[split]
            return
        source = RowEvaluation(self.inputs[split], batch_size, self.fixed_length)
        log_padding(split, source.padding_share())
        with ExitStack() as folders:
            folder = folders.enter_context(scratch_folder(self.folder, ".outputs"))
            outputs = RowOutputs(folder, self.rows[split], self.head.token_outputs)
            compute_outputs(split, outputs, source, self.models)
            if keep:
                self._kept[split] = outputs
                self._folders.push(folders.pop_all())
            yield outputs


def log_padding(split: str, share: float) -> None:
    """Says how much of what is computed for a split is padding."""
    _LOGGER.info("%s: %.1f %% of the computed positions are padding", split, 100 * share)
