"""Tags as a task: column files → windows over documents → a tag a word → conlleval's figures."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.models.frozen_features import frozen_features
from keras_bert_impl.serving.task_settings import served_length, without_task
from pipelines.metrics.entities import OUTSIDE, EntityScorer
from pipelines.records.rows import Rows
from pipelines.tasks.tagging.column_files import (
    Document,
    Layout,
    read_documents,
    with_tags,
    without_words,
)
from pipelines.tasks.tagging.schemes import SCHEMES, Scheme
from pipelines.tasks.tagging.tag_answers import TagAnswer, answer, json_lines, units_of
from pipelines.tasks.tagging.tag_rows import (
    TAG_IDS,
    tag_rows,
    tokenize_characters,
    tokenize_words,
    window_stride,
)
from pipelines.tasks.tagging.tag_survey import CHARACTERS, WORDS
from pipelines.tasks.tagging.tagging_config import DOCUMENT, SENTENCE
from pipelines.tasks.task import Answered, FrozenEncoder, Head

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

NAME = "ner"


class TaggedFile(NamedTuple):
    """A file of sentences.

    Attributes:
        path: the file.
        layout: of its lines.
    """

    path: Path
    layout: Layout

    @property
    def has_tags(self) -> bool:
        """Whether its words have tags."""
        return self.layout.tag is not None

    def of_characters(self) -> "TaggedFile":
        """The file, known to hold characters: in one of a single column a blank is one of them."""
        return self._replace(layout=self.layout._replace(whole_lines=self.layout.width == 1))


@dataclass(frozen=True)
class TaggingTask:
    """Tags on words or characters; see `pipelines.tasks.task.Task`.

    Attributes:
        labels: all tags, in the order of the classes.
        scheme: how they write entities.
        unit: "words" or "characters".
        whole_documents: whether a word is seen in its document, or in its sentence.
        doc_stride: tokens from the start of a window to the start of the next one; 0 is half a
            window.
        sources: the files of the splits "train", "dev" and "test", as far as there are any.
        layout_settings: what else a model directory says of the files that it was trained on.
    """

    labels: tuple[str, ...]
    scheme: Scheme
    unit: str = WORDS
    whole_documents: bool = True
    doc_stride: int = 0
    sources: Mapping[str, TaggedFile] = field(default_factory=dict)
    layout_settings: Mapping[str, int] = field(default_factory=dict)
    name: str = NAME
    train_split: str = "train"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "TaggingTask":
        """The task of a model directory, to serve its model; the labels are the model's."""
        return cls(
            labels=(),
            scheme=SCHEMES[settings["tagging_scheme"]],
            unit=settings["tag_unit"],
            doc_stride=settings["doc_stride"],
        )

    @property
    def evaluation_splits(self) -> Sequence[str]:
        """The dev and the test file, where they have tags."""
        return [split for split in self.test_splits if self.sources[split].has_tags]

    @property
    def test_splits(self) -> Sequence[str]:
        """The dev and the test file."""
        return [split for split in ("dev", "test") if split in self.sources]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that change the rows."""
        return {
            "tagging_scheme": self.scheme.name,
            "tag_unit": self.unit,
            "context": DOCUMENT if self.whole_documents else SENTENCE,
            "doc_stride": self.doc_stride,
            **self.layout_settings,
        }

    def files(self, split: str) -> Sequence[Path]:
        """The split's file.

        Raises:
            UserError: none was given.
        """
        return [self._source(split).path]

    def examples(self, split: str) -> Iterable[Document]:
        """The documents of a split, or its sentences."""
        return read_documents(*self._source(split), whole=self.whole_documents)

    def _source(self, split: str) -> TaggedFile:
        if split not in self.sources:
            raise UserError(
                f"`{split}_file` is missing; name a file with a word and its tag on each line."
            )
        return self.sources[split]

    def rows(
        self,
        examples: Sequence[Document],
        tokenizer: "Tokenizer",
        max_seq_length: int,
        *,
        training: bool,
    ) -> Rows:
        """Windows over the documents."""
        del training  # the same rows are learned and answered
        if self.unit == CHARACTERS:
            tokens = tokenize_characters(examples, tokenizer, self.labels, self.scheme)
        else:
            tokens = tokenize_words(examples, tokenizer, self.labels)
        return tag_rows(tokens, tokenizer, max_seq_length, self.doc_stride)

    def configure(self, config: "BertConfig") -> "BertConfig":
        """The configuration with the tags as labels."""
        names = {
            "architectures": ["BertForTokenClassification"],
            "id2label": {str(number): tag for number, tag in enumerate(self.labels)},
            "label2id": {tag: number for number, tag in enumerate(self.labels)},
        }
        config = without_task(config)
        return config.replace(extra={**config.extra, **names})

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        """A model with a score of each tag for each token, its encoder frozen or not."""
        from keras_bert_impl.checkpoints.model_source import label_names
        from keras_bert_impl.models.feature_tagger import (
            LAYER_VECTORS,
            VECTOR_INPUTS,
            BertFeatureTagger,
        )
        from keras_bert_impl.models.token_classifier import BertTokenClassifier
        from keras_bert_impl.training.tag_objective import TagObjective

        labels, both = len(label_names(config)), ((TAG_IDS,), ("logits",))
        if frozen_features(config) is None:
            return Head(BertTokenClassifier(config, labels, dtype=dtype), TagObjective(), *both)
        model = BertFeatureTagger(config, labels, dtype=dtype)
        learns = Head(model.on_vectors, TagObjective(VECTOR_INPUTS), *both)
        frozen = FrozenEncoder(model.layers_read, LAYER_VECTORS, learns)
        return Head(model, TagObjective(), *both, frozen=frozen)

    def answers(
        self, examples: Sequence[Document], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> Sequence[TagAnswer]:
        """The tags of all words of each document."""
        units = units_of(rows, outputs["logits"])
        return [
            answer(document, found, self.labels, self.scheme, self.unit)
            for document, found in zip(examples, units, strict=True)
        ]

    def score(self, answered: Answered[Document, TagAnswer]) -> Mapping[str, float]:
        """The figures of `conlleval` in percent, of all types and of each."""
        return self._scorer(answered).scores()

    @property
    def compared_figures(self) -> Sequence[str]:
        """The figures of all types; see `ComparedTask`."""
        return ("f1", "precision", "recall")

    def constant_scores(self, split: str) -> Mapping[str, float]:
        """The figures of a model that finds nothing, whatever the split."""
        del split
        return dict.fromkeys(self.compared_figures, 0.0)

    def compared_answers(
        self, example: Document, answer: TagAnswer
    ) -> Iterator[tuple[Hashable, Hashable]]:
        """The tags of all words beside the right ones; see `ComparedTask`."""
        for sentence, tags in zip(example.sentences, answer.tags, strict=True):
            yield from zip(tags, sentence.tags or tags, strict=True)

    def illustrate(
        self, folder: Path, split: str, answered: Answered[Document, TagAnswer]
    ) -> Sequence[Path]:
        """Writes what `conlleval` prints of the file of predictions."""
        path = folder / f"{split}_conlleval.txt"
        with open_whole(path) as file:
            file.write(self._scorer(answered).report())
        return [path]

    def write(
        self, folder: Path, split: str, answered: Answered[Document, TagAnswer]
    ) -> Sequence[Path]:
        """Writes the file with a column of predicted tags, and its entities as JSON lines."""
        columns, entities = folder / f"{split}_predictions.txt", folder / f"{split}_entities.jsonl"
        layout = self._source(split).layout
        with open_whole(columns) as file:
            file.writelines(f"{line}\n" for line in _lines(answered, layout))
        with open_whole(entities) as file:
            file.writelines(json_lines(answered, self.unit))
        return [columns, entities]

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        """Texts to entities; see `ServedTagger`."""
        from keras_bert_impl.serving.served_tagger import ServedTagger, TagMeaning

        config = opened.model.config
        length = served_length(config, max_seq_length)
        config.check_length(length, at_least=5)
        meanings = [
            TagMeaning(*self.scheme.as_iob(label).partition("-")[::2]) for label in opened.labels
        ]
        return ServedTagger(
            opened,
            meanings,
            max_seq_length=length,
            stride=window_stride(length, self.doc_stride),
            characters=self.unit == CHARACTERS,
        )

    def _scorer(self, answered: Answered[Document, TagAnswer]) -> EntityScorer:
        scorer = EntityScorer()
        for document, given in answered:
            asides = list(document.after)
            for sentence, tags in zip(document.sentences, given.tags, strict=True):
                expected = [self.scheme.as_iob(tag) for tag in sentence.tags or ()]
                scorer.add(expected, [self.scheme.as_iob(tag) for tag in tags])
                asides += sentence.before
            counted = [OUTSIDE for line in asides if line.is_counted]
            scorer.add(counted, counted)
        return scorer


def _lines(answered: Answered[Document, TagAnswer], layout: Layout) -> Iterator[str]:
    for document, given in answered:
        for sentence, tags in zip(document.sentences, given.tags, strict=True):
            yield from with_tags(sentence, tags, layout)
        yield from without_words(document.after, layout.separator)
