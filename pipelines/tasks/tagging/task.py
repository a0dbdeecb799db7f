"""The task of a run for tags: from files and options to rows, scores and entities, all checked."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import label_names
from keras_bert_impl.checkpoints.task_settings import (
    served_length,
    task_settings,
    with_labels,
    without_task,
)
from keras_bert_impl.errors import UserError, cut
from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.training.learning_curve import CurveStyle
from pipelines.fine_tuning.counts import Counted
from pipelines.fine_tuning.start import FilesOfSplits, TaskBuilder
from pipelines.fine_tuning.task import Answered, Facts, Head
from pipelines.metrics.entities import OUTSIDE, EntityScorer, klue_scores
from pipelines.metrics.guessing import Guessing
from pipelines.records.rows import Rows
from pipelines.tasks.tagging.answers import EntityForm, TagAnswer, answer, laid_out, units_of
from pipelines.tasks.tagging.files import (
    Document,
    Sentence,
    TaggedFile,
    open_tagged,
    read_documents,
    read_sentences,
    with_tags,
)
from pipelines.tasks.tagging.options import AUTO, DOCUMENT, SENTENCE, RunNerConfig, TaggingConfig
from pipelines.tasks.tagging.rows import (
    TAG_IDS,
    tag_rows,
    tokenize_characters,
    tokenize_words,
    window_stride,
)
from pipelines.tasks.tagging.schemes import (
    BARE,
    CHARACTERS,
    IOB1,
    SCHEMES,
    WORDS,
    Scheme,
    TagStatistics,
    scheme_of_labels,
    tags_of_labels,
)
from pipelines.tasks.tagging.texts import Notes, cuts_words

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.forms import KnownModel
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer


NAME = "ner"
_LOGGER = logging.getLogger(__name__)
_UNNAMED = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class TaggingTask(FilesOfSplits):
    """Tags on words or characters; see `pipelines.fine_tuning.task.Task`."""

    NEEDED: ClassVar = "a file with a word and its tag on each line"
    ARCHITECTURE, MODEL = "BertForTokenClassification", "BertTokenClassifier"
    compared_figures: ClassVar = ("f1", "precision", "recall")
    curve_style: ClassVar = CurveStyle(("accuracy", *compared_figures), full_score=100.0)

    labels: tuple[str, ...]
    scheme: Scheme
    unit: str = WORDS
    whole_documents: bool = True  # a word is seen in its document, else in its sentence
    doc_stride: int = 0  # tokens from window to window; 0 is half a window
    sources: Mapping[str, TaggedFile] = field(default_factory=dict)
    layout_settings: Mapping[str, int | str] = field(default_factory=dict)
    ours: bool = True  # the model's labels are tags as this project writes them
    name: str = NAME
    train_split: str = "train"

    @classmethod
    def of_model(cls, model: "BertConfig") -> "TaggingTask":
        """The task of a trained model, to serve it; the labels are the model's.

        One that was trained elsewhere tags words, in the scheme that its labels are written in.
        """
        if task_settings(model).get("task") == NAME:
            known = RunNerConfig.known(model, ("tagging_scheme", "tag_unit", "doc_stride"))
            scheme = SCHEMES[known["tagging_scheme"]]
            return cls((), scheme, known["tag_unit"], doc_stride=known["doc_stride"])
        labels = [*label_names(model).values()]
        if all(map(_UNNAMED.fullmatch, labels)):
            some = cut(", ".join(labels), 60) or "none"
            raise UserError(
                f"{model.origin}: its labels have no names ({some}), so that it is not known which "
                "tag is which; write the tags (O, B-PER, ...) into its `id2label`."
            )
        return cls((), scheme_of_labels(tags_of_labels(labels)), ours=False)

    def _tags_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """A model's labels as tags; see `tags_of_labels`."""
        tags = tuple(labels) if self.ours else tags_of_labels(labels)
        left = [label for label, tag in zip(labels, tags, strict=True) if label != tag == OUTSIDE]
        if left:
            found = cut(", ".join(left), 200)
            _LOGGER.info("Words with the model's labels %s are of no entity, as O.", found)
        return tags

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "tagging_scheme": self.scheme.name,
            "tag_unit": self.unit,
            "context": DOCUMENT if self.whole_documents else SENTENCE,
            "doc_stride": self.doc_stride,
            **self.layout_settings,
        }

    def examples(self, split: str) -> Iterable[Document]:
        """The documents of a split, or its sentences."""
        return read_documents(self.source(split), whole=self.whole_documents)

    def facts(self, example: Document) -> Facts:
        tags = [tag for sentence in example.sentences for tag in sentence.tags or ()]
        return Facts(tags or None, next((n for one in example.sentences for n in one.numbers), 0))

    def texts(self, example: Document) -> list[str]:
        between = "" if self.unit == CHARACTERS else " "
        return [between.join(sentence.items) for sentence in example.sentences]

    def rows(
        self, examples: Sequence[Document], tokenizer: "LineTokenizer", max_seq_length: int
    ) -> Rows:
        if self.unit == CHARACTERS:
            tokens = tokenize_characters(examples, tokenizer, self.labels, self.scheme)
        else:
            tokens = tokenize_words(examples, tokenizer, self.labels)
        return tag_rows(tokens, tokenizer, max_seq_length, self.doc_stride)

    def configure(self, config: "BertConfig") -> "BertConfig":
        names = {"architectures": [self.ARCHITECTURE]}
        return with_labels(without_task(config), self.labels, **names)

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        """A model with a score of each tag for each token."""
        from keras_bert_impl.models.token_models import BertTokenClassifier
        from keras_bert_impl.training.objectives import TagObjective

        model = BertTokenClassifier(config, len(label_names(config)), dtype=dtype)
        return Head(model, TagObjective(), (TAG_IDS,), ("logits",))

    def answers(
        self, examples: Sequence[Document], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> Sequence[TagAnswer]:
        units = units_of(rows, outputs["logits"])
        return [
            answer(document, found, self.labels, self.scheme, self.unit)
            for document, found in zip(examples, units, strict=True)
        ]

    def score(self, answered: Answered[Document, TagAnswer]) -> Mapping[str, float]:
        """The figures of `conlleval` in percent, of all types and of each; KLUE's of characters."""
        scores = self._scorer(answered).scores()
        if self.unit == CHARACTERS and self.scheme not in (BARE, IOB1):
            _, expected, predicted = zip(*self._iob_tags(answered), strict=True)
            labels = [self.scheme.as_iob(label) for label in self.labels]
            scores |= klue_scores([*chain(*expected)], [*chain(*predicted)], labels)
        return scores

    def guessing(self, split: str) -> Guessing:
        def nothing(document: Document) -> TagAnswer:
            return TagAnswer([[OUTSIDE] * len(one.tags or ()) for one in document.sentences], [])

        return Guessing("no entity anywhere", [(one, nothing(one)) for one in self.examples(split)])

    def illustrate(
        self, folder: Path, split: str, answered: Answered[Document, TagAnswer]
    ) -> Sequence[Path]:
        path = folder / f"{split}_conlleval.txt"
        with open_whole(path) as file:
            file.write(self._scorer(answered).report())
        return [path]

    def write(
        self, folder: Path, split: str, answered: Answered[Document, TagAnswer]
    ) -> Sequence[Path]:
        """Writes the file with a column of predicted tags, and its entities as JSON lines."""
        columns, entities = folder / f"{split}_predictions.txt", folder / f"{split}_entities.jsonl"
        own = self.source(split)
        with open_whole(columns) as file:
            for document, given in answered:
                for sentence, tags in zip(document.sentences, given.tags, strict=True):
                    file.writelines(f"{line}\n" for line in with_tags(sentence, tags, own))
        with open_whole(entities) as file:
            for document, given in answered:
                value = {
                    "line": document.sentences[0].numbers[0],
                    "text": laid_out(document, self.unit)[0],
                    "entities": [entity._asdict() for entity in given.entities],
                }
                file.write(json_text(value, ensure_ascii=False) + "\n")
        return [columns, entities]

    def forms(self, model: "KnownModel", max_seq_length: int | None) -> list[EntityForm]:
        length = served_length(model.config, max_seq_length, at_least=5)
        task = replace(self, labels=self._tags_of(model.labels))
        return [EntityForm(task, self.unit, model, length, raw=raw) for raw in (False, True)]

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        from pipelines.tasks.tagging.served import ServedTagger

        length = served_length(opened.model.config, max_seq_length, at_least=5)
        return ServedTagger(
            opened,
            [self.scheme.as_iob(tag) for tag in self._tags_of(opened.labels)],
            max_seq_length=length,
            stride=window_stride(length, self.doc_stride),
            characters=self.unit == CHARACTERS,
        )

    def _scorer(self, answered: Answered[Document, TagAnswer]) -> EntityScorer:
        scorer = EntityScorer()
        for sentence, expected, predicted in self._iob_tags(answered):
            scorer.add(expected, predicted)
            starts = [OUTSIDE] * sentence.start_counts
            scorer.add(starts, starts)
        return scorer

    def _iob_tags(
        self, answered: Answered[Document, TagAnswer]
    ) -> Iterator[tuple[Sentence, list[str], list[str]]]:
        """Each sentence, its tags and those of its answer, as the official scorer reads them."""
        for document, given in answered:
            for sentence, tags in zip(document.sentences, given.tags, strict=True):
                own = [self.scheme.as_iob(tag) for tag in sentence.tags or ()]
                yield sentence, own, [self.scheme.as_iob(tag) for tag in tags]


class _Builder(TaskBuilder):
    """See `TaskBuilder`; the columns of the training file are expected of the others."""

    CONFIG = RunNerConfig
    TRAINING_IS_MISSING = (
        f"`train_file` is missing; name {TaggingTask.NEEDED}, or with `data_dir` the folder of "
        "train.txt."
    )

    def __init__(self, config: TaggingConfig, *how: Any) -> None:
        super().__init__(config, *how)
        known = self._known = self._known if self._known.get("task") == NAME else {}
        self._word_column = config.word_column or known.get("word_column") or 1
        columns = (config.tag_column, known.get("tag_column"), -1)  # 0 is one; null says nothing
        self._tag_column: int = next(column for column in columns if column is not None)
        self._width: int | None = known.get("columns")
        self._form: str = known.get("form", "columns")

    def _open(self, split: str, name: Path) -> TaggedFile:
        """A file's columns; one that lacks the last column, that of the tags, has no tags.

        Not so where a trained model reads a file whose column of tags is named: the file need not
        look like that of the training.
        """
        config, columns = self._config, (self._word_column, self._tag_column)
        sentences = self._form == "sentences"
        file = open_tagged(name, *columns, config.text_encoding, sentences=sentences)
        asked = (config.tagging_scheme, self._known.get("tagging_scheme"))
        file = file._replace(bare=BARE.name in asked)
        if split == "train":
            self._width, self._form = file.width, file.form
        lacks_last = file.form == "columns" and file.width == (self._width or 0) - 1
        named = self._trained is not None and config.tag_column is not None
        lacks = lacks_last and not named and columns[1] in (-1, self._width)
        if split == "test" and (lacks or not self._reads_labels(split)):
            file = file._replace(tag=None)
        if split != "test" and file.tag is None:
            raise UserError(
                f"{name}: has no tags, only words; name it with `test_file` to have it tagged."
            )
        return file

    def _find(self, files: Mapping[str, TaggedFile]) -> TaggingTask:
        first, known = next(iter(files.values())), self._known
        statistics = TagStatistics(first.path, read_sentences(first))
        if self._trained is None:
            scheme = self._named_scheme or statistics.scheme()
            labels = scheme.tags(statistics.types(scheme))
        else:
            labels = self._trained.labels if known else tags_of_labels(self._trained.labels)
            scheme = self._named_scheme or scheme_of_labels(labels)
            if OUTSIDE not in labels or not scheme.has(labels):
                some = cut(", ".join(labels[:6]), 200) or "none"
                raise UserError(
                    f"{self._trained.checkpoint}: its labels ({some}) are no tags of entities; name"
                    " a model that was trained to find entities, or train one (`do_train=True`)."
                )
        by_character = not statistics.several or (
            first.form == "texts" and cuts_words(first.path, first.encoding)
        )
        context = self._config.context
        return TaggingTask(
            labels,
            scheme,
            unit=known.get("tag_unit", CHARACTERS if by_character else WORDS),
            whole_documents=(known.get("context") if context == AUTO else context) != SENTENCE,
            doc_stride=self._config.doc_stride,
            layout_settings={
                "columns": known.get("columns", first.width),
                "word_column": self._word_column,
                "tag_column": self._tag_column,
                **({} if self._form == "columns" else {"form": self._form}),
            },
        )

    def _check(self, split: str, file: TaggedFile, found: TaggingTask) -> TaggedFile:
        """Holds a file against scheme, types and unit."""
        if found.unit == CHARACTERS:  # in a file of a single column a blank is one of them
            file = file._replace(whole_lines=file.form == "texts" or file.width == 1)
        notes = Notes(Counted)
        counted = TagStatistics(file.path, read_sentences(file, notes))
        if split != "train":
            if found.unit == CHARACTERS and counted.several:
                raise UserError(
                    f"{file.path}: line {counted.several} has several characters, but those of "
                    "training have one each; write one a line."
                )
            types = filter(None, map(found.scheme.type_of, found.labels))
            counted.types(found.scheme, sorted({*types}))
        counted.log(found.scheme if file.labelled else None, found.unit)
        for what, rows in notes.items():
            rows.warn(file.path, what)
        return file

    def _make(self, sources: Mapping[str, TaggedFile], found: TaggingTask) -> TaggingTask:
        return replace(found, sources=sources)

    @property
    def _named_scheme(self) -> Scheme | None:
        """The scheme that a trained model, or an option, names."""
        known, asked = self._known.get("tagging_scheme"), self._config.tagging_scheme
        if known and asked not in (AUTO, known):
            raise UserError(
                f"`tagging_scheme={asked}`: the model was trained on tags in {known}; leave it out."
            )
        return SCHEMES.get(known or asked)


def task_of(config: RunNerConfig) -> TaggingTask:
    """The task that a configuration describes."""
    return _Builder.for_run(config, config.files)
