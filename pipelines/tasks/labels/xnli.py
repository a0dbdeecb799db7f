"""XNLI: MNLI's task in fifteen languages, read from the files as they are published.

`XNLI-1.0.zip` has `xnli.dev.tsv` and `xnli.test.tsv` with all languages in one file, and
`XNLI-MT-1.0.zip` has MNLI's training set in each language, `multinli/multinli.train.zh.tsv`. Both
are read where their archives put them, or without the archives' own folders, as
google-research/bert has them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_there
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.tables.files import read_table
from pipelines.tasks.labels.glue import MNLI, GlueTask, Layout
from pipelines.tasks.labels.options import LANGUAGES, XnliConfig

_LANGUAGE = "language"
_TRAINING = Layout("premise", "hypo", "label")
_ARCHIVES = {"train": "XNLI-MT-1.0", "dev": "XNLI-1.0", "test": "XNLI-1.0"}
# The translated training files call one label by another word than all other files.
_LABELS = {"contradictory": "contradiction"}


@dataclass(frozen=True)
class XnliTask(GlueTask):
    """XNLI in some of its languages; its splits are called `train`, `dev_zh`, `test_zh`.

    The test sets are labelled; they are scored as well where they are there.

    Attributes:
        language: the language of the training set.
    """

    language: str = "en"

    def files(self, split: str) -> list[Path]:
        """The one file of a split: of training, one a language; of the others one for all."""
        part, _, _ = split.partition("_")
        inner = f"multinli/multinli.train.{self.language}.tsv" if part == "train" else ""
        inner = inner or f"xnli.{part}.tsv"
        unpacked = self.data_dir / _ARCHIVES[part] / inner
        return [unpacked if is_there(unpacked) else self.data_dir / inner]

    def examples(self, split: str) -> Iterator[TextExample]:
        """Reads the lines of a split's language; see `Task.examples`."""
        part, _, language = split.partition("_")
        (path,) = self.files(split)
        return self._read_training(path) if part == "train" else self._read(path, language)

    def _read_training(self, path: Path) -> Iterator[TextExample]:
        layout = _TRAINING
        for number, line in enumerate(read_table(path, [*layout.texts, layout.label])):
            texts = [line.values[column] for column in layout.texts]
            label = line.values[layout.label]
            label = _LABELS.get(label, label)
            self.check_label(path, line.line, label)
            yield TextExample(str(number), texts[0], texts[1], label)

    def _read(self, path: Path, language: str) -> Iterator[TextExample]:
        layout, count = self.layout, 0
        for line in read_table(path, [_LANGUAGE, *layout.texts, layout.label]):
            if line.values[_LANGUAGE] != language:
                continue
            texts = [line.values[column] for column in layout.texts]
            label = line.values[layout.label]
            self.check_label(path, line.line, label)
            yield TextExample(str(count), texts[0], texts[1], label)
            count += 1
        if not count:
            raise UserError(
                f"{path}: has no rows whose {_LANGUAGE} is {language!r}; choose from "
                f"{', '.join(LANGUAGES)} with `xnli_eval_languages`."
            )


def xnli_task(data_dir: Path, config: XnliConfig, long_texts: LongTexts | None = None) -> XnliTask:
    """Gives the task for a run.

    Args:
        data_dir: the folder in which XNLI's archives were unpacked.
        config: the languages.
        long_texts: what becomes of texts that are longer than a row.

    Raises:
        UserError: there is no such language.
    """
    unknown = [one for one in config.scored if one not in LANGUAGES]
    if unknown:
        raise UserError(
            f"`xnli_eval_languages={','.join(unknown)}`: XNLI has {', '.join(LANGUAGES)}, or all."
        )
    task = XnliTask(
        "XNLI",
        MNLI.layout,
        MNLI.head_of,
        MNLI.metrics,
        data_dir=Path(data_dir),
        long_texts=long_texts or LongTexts(),
        language=config.xnli_language,
    )
    tests = tuple(f"test_{language}" for language in config.scored)
    scored = [f"dev_{language}" for language in config.scored]
    scored += [split for split in tests if is_there(task.files(split)[0])]
    return replace(
        task,
        evaluation_splits=tuple(scored),
        test_splits=tests,
        submissions=tuple(f"XNLI-{language}.tsv" for language in config.scored),
    )
