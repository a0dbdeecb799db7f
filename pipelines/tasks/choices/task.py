"""The task of a run for endings: each is read with the context in front, and the best is chosen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.task_settings import served_length, task_settings, without_task
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields, softmax
from keras_bert_impl.tokenization.packing import truncated_lengths
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.fine_tuning.start import FilesOfSplits, TaskBuilder
from pipelines.fine_tuning.task import Answered, Facts, Head
from pipelines.fine_tuning.text_rows import Spans, pack, ranges
from pipelines.metrics.classification import accuracy
from pipelines.metrics.guessing import Guessing, constant_answer
from pipelines.records.rows import Numbers, Rows
from pipelines.tables.writing import write_table
from pipelines.tasks.choices.files import (
    ANY_NUMBER,
    Choice,
    RunSwagConfig,
    has_labels,
    read_choices,
)
from pipelines.tasks.row_form import RowForm, single_rows, truncated_tokens

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer

NAME = "swag"


class ChoiceFile(NamedTuple):
    """A file of examples."""

    path: Path
    labelled: bool
    encoding: TextEncoding = UTF_8


class ChoiceAnswer(NamedTuple):
    """Which ending a model chooses."""

    ending: int  # from 0
    probabilities: NDArray[np.float32]  # [endings]


@dataclass(frozen=True)
class ChoiceTask(FilesOfSplits):
    """One of several endings; see `pipelines.fine_tuning.task.Task`."""

    NEEDED: ClassVar = "a file with SWAG's columns"
    ARCHITECTURE, MODEL = "BertForMultipleChoice", "BertMultipleChoice"

    num_choices: int
    sources: Mapping[str, ChoiceFile] = field(default_factory=dict)
    name: str = NAME
    train_split: str = "train"

    @classmethod
    def of_model(cls, model: "BertConfig") -> "ChoiceTask":
        """The task of a trained model, to serve it.

        One that was trained elsewhere does not say among how many endings it chooses.
        """
        needed = ("num_choices",) if task_settings(model).get("task") == NAME else ()
        return cls(RunSwagConfig.known(model, needed).get("num_choices", ANY_NUMBER))

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"num_choices": self.num_choices}

    def examples(self, split: str) -> Iterable[Choice]:
        """The examples of a split, in their order."""
        path, labelled, encoding = self.source(split)
        return read_choices(
            path, labelled=labelled, num_choices=self.num_choices, encoding=encoding
        )

    def facts(self, example: Choice) -> Facts:
        return Facts(None if example.label is None else [str(example.label)], example.line)

    def texts(self, example: Choice) -> list[str]:
        return [example.context, *example.endings]

    def rows(
        self, examples: Sequence[Choice], tokenizer: "LineTokenizer", max_seq_length: int
    ) -> Rows:
        """A row for each example: `[CLS] context [SEP] ending [SEP]` for each of its endings."""
        contexts = Spans.of(tokenizer.encode_lines([example.context for example in examples]))
        endings = [ending for example in examples for ending in example.endings]
        second = Spans.of(tokenizer.encode_lines(endings))
        first = Spans(contexts.ids, *(np.repeat(x, self.num_choices) for x in contexts[1:]))
        room = max_seq_length - 2 - (second.length > 0)
        kept_a, kept_b = truncated_lengths(first.length, second.length, room)
        lengths, tokens = pack(
            tokenizer.vocabulary, first._replace(length=kept_a), second._replace(length=kept_b)
        )
        longest, padded = _side_by_side(lengths, tokens, self.num_choices)
        labels = [example.label for example in examples]
        values = {} if None in labels else {"label_ids": np.array(labels, np.int32)}
        cut = first.length + second.length - kept_a - kept_b
        most = cut.reshape(-1, self.num_choices).max(axis=1, initial=0)
        return Rows(np.arange(len(examples)), longest, padded, values, self.num_choices, most)

    def configure(self, config: "BertConfig") -> "BertConfig":
        names = {"architectures": [self.ARCHITECTURE]}
        return config.replace(extra={**without_task(config).extra, **names})

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        from keras_bert_impl.models.multiple_choice import BertMultipleChoice
        from keras_bert_impl.training.objectives import ClassificationObjective

        model = BertMultipleChoice(config, self.num_choices, dtype=dtype)
        return Head(model, ClassificationObjective())

    def answers(
        self, examples: Sequence[Choice], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> Sequence[ChoiceAnswer]:
        del examples, rows
        logits = outputs["logits"].astype(np.float32)  # [examples, endings]
        return list(map(ChoiceAnswer, logits.argmax(axis=-1).tolist(), softmax(logits)))

    def score(self, answered: Answered[Choice, ChoiceAnswer]) -> Mapping[str, float]:
        pairs = [(answer.ending, example.label) for example, answer in answered]
        chosen, right = zip(*pairs, strict=True)
        return {"accuracy": accuracy(chosen, right)}

    def guessing(self, split: str) -> Guessing:
        best = constant_answer(np.array([example.label for example in self.examples(split)]))
        answer = ChoiceAnswer(best, np.array([], np.float32))
        words = "always the ending of the same number"
        return Guessing(words, [(one, answer) for one in self.examples(split)])

    def write(
        self, folder: Path, split: str, answered: Answered[Choice, ChoiceAnswer]
    ) -> Sequence[Path]:
        """Writes a table: identifier, chosen ending, and the probability of each."""
        names = [f"P({number})" for number in range(self.num_choices)]
        rows = (
            [example.identifier, answer.ending, *map(str, answer.probabilities)]
            for example, answer in answered
        )
        path = folder / f"{split}_predictions.tsv"
        return [write_table(path, ["id", "prediction", *names], rows)]

    def forms(self, model: KnownModel, max_seq_length: int | None) -> "list[ChoiceForm]":
        length = served_length(model.config, max_seq_length, at_least=5)
        return [ChoiceForm(self, model, length)]

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        from pipelines.tasks.choices.served import ServedChooser

        config = opened.model.config
        if self.num_choices == ANY_NUMBER:
            raise UserError(
                f"{config.origin}: does not say among how many endings the model chooses, which a "
                'signature has to know; add "num_choices" to task_specific_params.keras_bert_impl.'
            )
        length = served_length(config, max_seq_length, at_least=5)
        return ServedChooser(opened, self.num_choices, length)


_OUTPUTS = {
    "ending": "the number of the best ending, from 0",
    "probabilities": "of each ending",
    "logits": "one of each ending",
}


class ChoiceForm(RowForm):
    """A context and its endings to the best one."""

    signature, kind = "text", "choice"
    inputs = (
        Input("context", about="what is continued"),
        Input("endings", is_list=True, about="what may follow"),
    )
    outputs = _OUTPUTS
    model_outputs = ("logits",)

    def __init__(self, task: ChoiceTask, model: KnownModel, max_seq_length: int) -> None:
        self._task, self.max_seq_length = task, max_seq_length
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        fields, own = read_fields(self.inputs, instances), self._task.num_choices
        counts = [len(endings) for endings in fields["endings"]]
        for number, count in enumerate(counts, start=1):
            if (count < 2) if own == ANY_NUMBER else (count != own):
                raise UserError(
                    f"instance {number}: `endings` has {count} texts; this model chooses among "
                    f"{'two or more' if own == ANY_NUMBER else own}: give as many."
                )
        choices = [
            Choice("", context, tuple(endings[place : place + own]), None, 0)
            for context, endings in zip(fields["context"], fields["endings"], strict=True)
            for place in range(0, len(endings), own)
        ]
        rows = self._task.rows(choices, self._tokenizer, self.max_seq_length)
        first = np.cumsum([0, *counts[:-1]]) // own  # row of each instance
        cut = np.maximum.reduceat(truncated_tokens(rows), first).tolist()
        return Prepared(single_rows(rows), counts, cut)

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        flat = self.joined(outputs)["logits"].astype(np.float32).reshape(-1)
        return [
            {
                "ending": int(logits.argmax()),
                "probabilities": softmax(logits).tolist(),
                "logits": logits.tolist(),
            }
            for logits in np.split(flat, np.cumsum(prepared.state)[:-1])
        ]


def _side_by_side(
    lengths: Numbers, tokens: Mapping[str, NDArray[np.int32]], choices: int
) -> tuple[Numbers, dict[str, NDArray[np.int32]]]:
    """Pads the choices of each row to the longest of them; of flat lengths and tokens.

    Example:
        >>> longest, padded = _side_by_side(np.array([1, 2]), {"x": np.array([7, 8, 9])}, 2)
        >>> longest.tolist(), padded["x"].tolist()
        ([2], [7, 0, 8, 9])
    """
    longest = lengths.reshape(-1, choices).max(axis=1, initial=0)
    room = np.repeat(longest, choices)
    target = ranges(np.cumsum(room) - room, lengths)
    padded = {name: np.zeros(int(room.sum()), np.int32) for name in tokens}
    for name, flat in tokens.items():
        padded[name][target] = flat
    return longest, padded


def task_of(config: RunSwagConfig) -> ChoiceTask:
    """The task that a configuration describes."""
    return _Builder.for_run(config, config)


class _Builder(TaskBuilder):
    """See `TaskBuilder`; what is found is how many endings an example has."""

    CONFIG = RunSwagConfig
    TRAINING_IS_MISSING = f"`train_file` is missing; name {ChoiceTask.NEEDED}."

    def _open(self, split: str, name: Path) -> ChoiceFile:
        encoding = self._config.text_encoding
        labelled = self._reads_labels(split) and (split != "test" or has_labels(name, encoding))
        return ChoiceFile(name, labelled, encoding)

    def _find(self, files: Mapping[str, ChoiceFile]) -> int:
        if self._trained is not None and self._known.get("task") == NAME:
            return ChoiceTask.of_model(self._trained.config).num_choices
        path, _, encoding = next(iter(files.values()))
        return len(next(read_choices(path, labelled=False, encoding=encoding)).endings)

    def _check(self, split: str, file: ChoiceFile, found: int) -> ChoiceFile:
        del split, found  # every example is checked when its row is made
        return file

    def _make(self, sources: Mapping[str, ChoiceFile], found: int) -> ChoiceTask:
        return ChoiceTask(found, sources)
