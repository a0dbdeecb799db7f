"""From files and options to a task: columns, scheme and tags found, everything checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.task_settings import task_settings
from pipelines.metrics.entities import OUTSIDE
from pipelines.tasks.tagging.column_files import (
    Layout,
    Sentence,
    find_layout,
    find_short_tags,
    read_sentences,
)
from pipelines.tasks.tagging.schemes import IOB2, SCHEMES, Scheme
from pipelines.tasks.tagging.tag_survey import (
    CHARACTERS,
    WORDS,
    TagSurvey,
    check_tags,
    check_types,
)
from pipelines.tasks.tagging.tagging_config import AUTO, SENTENCE, TaggingConfig
from pipelines.tasks.tagging.tagging_task import NAME, TaggedFile, TaggingTask


def open_tagging(config: TaggingConfig, trained: ModelSource | None = None) -> TaggingTask:
    """Reads all files once and makes the task, or says what is wrong with them.

    Args:
        config: the files, and what is in them.
        trained: the model that is scored or answers, which knows its tags; None where one is
            trained from the training file.

    Raises:
        UserError: a file, a column or a tag is not what it should be.
    """
    return _Opening(config, trained).task()


class _Opening:
    """The steps by which a task is opened."""

    def __init__(self, config: TaggingConfig, trained: ModelSource | None) -> None:
        self._config, self._trained = config, trained
        known = {} if trained is None else task_settings(trained.config)
        self._known: Mapping[str, Any] = known if known.get("task") == NAME else {}
        self._word_column = self._chosen("word_column", config.word_column, None, 1)
        self._tag_column = self._chosen("tag_column", config.tag_column, None, -1)

    def _chosen(self, name: str, given: Any, open_value: Any, default: Any) -> Any:
        """What was asked for, else what the model was trained with, else the default."""
        return self._known.get(name, default) if given == open_value else given

    def task(self) -> TaggingTask:
        """Finds scheme and tags, and checks all files."""
        sources = self._sources()
        survey = self._survey(sources)
        scheme = self._scheme(survey)
        if self._trained is None:
            types = survey.types(scheme)
            labels = scheme.tags(types)
        else:
            labels = self._trained.labels
            types = self._types(labels, scheme)
        unit = self._unit(survey)
        if unit == CHARACTERS:
            sources = {split: source.of_characters() for split, source in sources.items()}
        for split, source in sources.items():
            self._check(source, scheme, types, unit, survey if split == "train" else None)
        return TaggingTask(
            labels=labels,
            scheme=scheme,
            unit=unit,
            whole_documents=self._chosen("context", self._config.context, AUTO, AUTO) != SENTENCE,
            doc_stride=self._config.doc_stride,
            sources=sources,
            layout_settings={
                "columns": self._count(sources),
                "word_column": self._word_column,
                "tag_column": self._tag_column,
                # Only where it is so: what is kept of other runs must stay what it was.
                **({"short_tags": True} if self._has_short_tags(sources) else {}),
            },
        )

    def _sources(self) -> dict[str, TaggedFile]:
        splits = ("train", "dev", "test") if self._trained is None else ("dev", "test")
        paths = {split: path for split in splits if (path := self._config.file(split))}
        if self._trained is None and "train" not in paths:
            raise UserError(
                "`train_file` is missing; name a file with a word and its tag on each line, or "
                "with `data_dir` the folder of train.txt."
            )
        if not paths:
            raise UserError(
                "there is no file to score or to tag; name one with `dev_file` or `test_file`, or "
                "with `data_dir` the folder of dev.txt and test.txt."
            )
        sources = dict[str, TaggedFile]()
        expected: int | None = self._known.get("columns")
        short = bool(self._known.get("short_tags", False))
        scheme = self._chosen("tagging_scheme", self._config.tagging_scheme, AUTO, AUTO)
        for split, path in paths.items():
            layout = self._layout(path, split, expected)
            if scheme in (AUTO, IOB2.name):
                layout = find_short_tags(path, layout, expected=short)
            sources[split] = TaggedFile(path, layout)
            if split == "train":
                expected, short = layout.width, layout.short_tags
        return sources

    def _layout(self, path: Path, split: str, expected: int | None) -> Layout:
        """A file's columns; one that lacks the last column, that of the tags, has no tags.

        Not so where a trained model reads a file whose column of tags is named: the file need not
        look like that of the training.
        """
        layout = find_layout(path, self._word_column, self._tag_column)
        lacks_last = expected is not None and layout.width == expected - 1
        named = self._trained is not None and self._config.tag_column is not None
        if split == "test" and lacks_last and not named and self._tag_column in (-1, expected):
            layout = layout._replace(tag=None)
        if split != "test" and layout.tag is None:
            raise UserError(
                f"{path}: has no tags, only words; name it with `test_file` to have it tagged."
            )
        return layout

    def _count(self, sources: Mapping[str, TaggedFile]) -> int:
        if "columns" in self._known:
            return self._known["columns"]
        return next(iter(sources.values())).layout.width

    def _has_short_tags(self, sources: Mapping[str, TaggedFile]) -> bool:
        """Whether the tags of training are short."""
        if self._trained is not None:
            return bool(self._known.get("short_tags", False))
        return sources["train"].layout.short_tags

    def _survey(self, sources: Mapping[str, TaggedFile]) -> TagSurvey:
        """The counts of the first file: that of training where there is one."""
        source = next(iter(sources.values()))
        return TagSurvey.of(source.path, read_sentences(*source))

    def _scheme(self, survey: TagSurvey) -> Scheme:
        known = self._known.get("tagging_scheme")
        name = self._config.tagging_scheme
        if name != AUTO:
            if known not in (None, name):
                raise UserError(
                    f"`tagging_scheme={name}`: the model was trained on tags in {known}; leave it "
                    "out."
                )
            return SCHEMES[name]
        return SCHEMES[known] if known else survey.scheme()

    def _unit(self, survey: TagSurvey) -> str:
        if self._config.tag_unit != AUTO:
            return self._config.tag_unit
        found = WORDS if survey.has_words else CHARACTERS
        return self._known.get("tag_unit", found)

    def _types(self, labels: tuple[str, ...], scheme: Scheme) -> list[str]:
        """The types of a trained model's tags.

        Raises:
            UserError: they are no tags of entities.
        """
        parts = [scheme.split(label) for label in labels]
        if OUTSIDE not in labels or None in parts:
            assert self._trained is not None  # the labels are its
            raise UserError(
                f"{self._trained.checkpoint}: its labels ({', '.join(labels[:6]) or 'none'}) are "
                f"no tags in {scheme.name}; name a model that was trained to find entities, or "
                "train one (`do_train=True`)."
            )
        return sorted({part.type for part in parts if part and part.type})

    def _check(
        self,
        source: TaggedFile,
        scheme: Scheme,
        types: list[str],
        unit: str,
        survey: TagSurvey | None,
    ) -> None:
        """Holds every line of a file against scheme, types and unit."""
        counted = survey or TagSurvey(source.path)
        check = check_types if self._config.keep_broken_tags else check_tags
        for sentence in read_sentences(*source):
            if survey is None:
                counted.add(sentence)
            check(source.path, sentence, scheme, types)
            if unit == CHARACTERS:
                _check_characters(source.path, sentence)
        counted.log(scheme if source.has_tags else None, unit)


def _check_characters(path: Path, sentence: Sentence) -> None:
    for number, item in zip(sentence.numbers, sentence.items, strict=True):
        if len(item) != 1:
            raise UserError(
                f"{path}: line {number} has {item!r} where a single character is expected; set "
                "`tag_unit=words`, or mend the line."
            )
