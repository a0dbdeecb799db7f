"""The whole adaptation: its steps, each once, and the report."""

import dataclasses
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from keras_bert_impl.checkpoints.destination import check_apart, check_folder
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.sources import is_google_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input, open_whole, whole_folder
from keras_bert_impl.json_files import read_typed
from keras_bert_impl.tokenization.learner import coverage
from keras_bert_impl.tokenization.reference import split_tokens
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import UNK, Vocabulary
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.stop_signal import StopSignal
from pipelines.adaptation.config import AdaptConfig
from pipelines.adaptation.planning import plan_lines
from pipelines.adaptation.report import (
    Adaptation,
    Coverage,
    constant_runs,
    task_figures,
    text_figures,
)
from pipelines.adaptation.start import make_start
from pipelines.adaptation.steps import ADAPTED, GROWN, ORIGINAL, Steps
from pipelines.adaptation.words import choose_words
from pipelines.corpora.documents import Reading
from pipelines.corpora.learn_vocabulary import LearnVocabularyConfig, count_words
from pipelines.corpora.sources import find_sources
from pipelines.many_runs.cells import Cell, Programs, Result, run_of
from pipelines.many_runs.runs import (
    Cores,
    Run,
    Values,
    do_runs,
    in_own_process,
    stop_on_signal,
)

_LOGGER = logging.getLogger(__name__)
_CONTINUES = "the same command continues"
_HEADS = {"masked_lm": "masked words", "next_sentence": "next sentences"}
_MODEL, _CURVE = "model", "learning_curve.png"


@dataclass(frozen=True)
class AdaptResults:
    """Results of a call.

    Attributes:
        lines: the plan of a dry run, or the report.
        files: what was written.
        already_finished: whether an earlier call had done all.
    """

    lines: list[str]
    files: list[Path]
    already_finished: bool = False


def adapt(config: AdaptConfig, programs: Programs) -> AdaptResults:
    """Adapts a model to a text; what is finished is left alone, what was stopped goes on.

    Args:
        config: the options.
        programs: the tools.

    Raises:
        UserError: an option, a file or the model is not what it should be, or a tool fails.
    """
    source = find_model(config.init_checkpoint, **config.description())
    lacks = _HEADS["masked_lm"] in _missing_heads(source)
    steps = Steps(config, source, config.words.num_new_tokens > 0, lacks)
    asked = steps.check(programs.config_of)
    if config.dry_run:
        return AdaptResults(plan_lines(config, source, asked), [])
    check_apart(config.init_checkpoint, config.output_dir / _MODEL)
    check_folder(config.output_dir / _MODEL)
    if not steps.trained.folder.exists():  # a call that goes on with the training knows
        for line in plan_lines(config, source, asked):
            _LOGGER.info("%s", line)
    _LOGGER.info("what each step prints is in %s", config.output_dir / "cells" / "*" / "log.txt")
    directory = RunDirectory.open(config.output_dir)
    with directory.taken(), stop_on_signal() as stop:
        return _Adaptation(steps, programs, stop).all_of_it()


class _Adaptation:
    """The runs of one call.

    Args:
        steps: the commands, as long as it is not known whether a word is worth adding.
        programs: the tools.
        stop: from `stop_on_signal`.
    """

    def __init__(self, steps: Steps, programs: Programs, stop: StopSignal) -> None:
        self._steps, self._programs, self._stop = steps, programs, stop
        self._results: dict[str, Values] = {}
        self._started = False

    def all_of_it(self) -> AdaptResults:
        """Does what is missing and writes the report."""
        self._do("text")
        _check_held_out(self._steps)
        self._do("words")
        chosen = self._results["words"]
        self._steps = dataclasses.replace(self._steps, grows=chosen["new_tokens"] > 0)
        cells = self._steps.cells()
        for cell in cells:
            if self._steps.prepares and cell.name in (f"evaluated-{GROWN}", "heads", "trained"):
                self._do("start")
            self._do(cell.name)
        folder, missing = self._steps.config.output_dir, _missing_heads(self._steps.source)
        report = self._report(cells, chosen, missing)
        self._place_model(report)
        files = [folder / _MODEL, *report.write(folder), folder / _CURVE]
        return AdaptResults(report.lines(), files, already_finished=not self._started)

    def _do(self, *names: str) -> None:
        """Does those of these runs that have no result yet.

        Raises:
            UserError: one failed, or was stopped.
        """
        every, missing = self._runs(), list[Run]()
        for name in names:
            kept = every[name].kept()
            if kept is None:
                missing.append(every[name])
            else:
                self._results[name] = kept
        self._started = self._started or bool(missing)
        for run, values in do_runs(missing, self._stop, among=list(every.values())):
            if values is not None:
                self._results[run.name] = values
        undone = [run for run in missing if run.name not in self._results]
        if undone:
            raise UserError(
                f"{undone[0].folder}: the run {undone[0].name} was stopped before its end; "
                f"{_CONTINUES} there."
            )

    def _runs(self) -> dict[str, Run]:
        """All runs by their names, as far as it is known what they will be."""
        steps = self._steps
        words = Run("words", steps.words_folder, self._choose_words)
        cells = (run_of(one, self._programs, keep_models=False) for one in steps.cells())
        first, *later = cells
        start = Run("start", steps.start_folder, self._make_start)
        made = [start] if steps.prepares else []
        return {run.name: run for run in (first, words, *made, *later)}

    def _make_start(self, _cores: Cores) -> Values:
        steps = self._steps
        return in_own_process(
            make_start,
            steps.before_start,
            [str(path) for path in steps.sentences(held_out=False)],
            steps.source.text.vocabulary.tokens,
            None if steps.grows else steps.config.description(),
            steps.config.seed,
            steps.start_folder / _MODEL,
            remedy=_CONTINUES,
        )

    def _choose_words(self, _cores: Cores) -> Values:
        return in_own_process(
            choose_words_of_text,
            [str(path) for path in self._steps.sentences(held_out=False)],
            [str(path) for path in self._steps.sentences(held_out=True)],
            self._steps.source.text,
            self._steps.config,
            self._steps.words_folder,
            remedy=_CONTINUES,
        )

    def _report(self, cells: Sequence[Cell], chosen: Values, missing: Sequence[str]) -> Adaptation:
        steps, config_of = self._steps, self._programs.config_of
        models = {ORIGINAL: steps.evaluated(ORIGINAL)}
        models |= {GROWN: steps.evaluated(GROWN)} if steps.grows else {}
        models[ADAPTED] = steps.trained
        text = {}
        for name, cell in models.items():
            before = name == ORIGINAL or not steps.grows
            text[name] = text_figures(
                cell.folder,
                config_of(cell.tool, cell.arguments),
                steps.source.text.vocabulary if before else self._grown_vocabulary(),
                Coverage(**chosen["before" if before else "after"]),
            )
        trained = RunDirectory(steps.trained.folder)
        figures = {
            which: [Result.of(self._results[one.name]).figures for one in steps.task_runs(which)]
            for which in (ORIGINAL, ADAPTED)
        }
        return Adaptation(
            steps.config.init_checkpoint,
            missing,
            chosen["new_tokens"],
            (trained.finished_step() or 0, trained.best_step() or 0),
            text,
            task_figures(figures[ORIGINAL], figures[ADAPTED], steps.config.task_figures),
            (constant_runs(figures[ORIGINAL]), constant_runs(figures[ADAPTED])),
            [cell.command for cell in cells],
        )

    def _grown_vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self._steps.grown.folder / "model" / "vocab.txt")

    def _place_model(self, report: Adaptation) -> None:
        """Copies the model and its curve to where the user looks for them."""
        folder, trained = self._steps.config.output_dir, self._steps.trained.folder
        if (folder / _MODEL).is_dir() and _commands_of(folder) == report.commands:
            return
        with whole_folder(folder / _MODEL) as aside:
            shutil.copytree(trained / "model", aside, dirs_exist_ok=True)
        if (trained / _CURVE).exists():
            with open_whole(folder / _CURVE, "wb") as file:
                file.write((trained / _CURVE).read_bytes())


def choose_words_of_text(
    train: Sequence[str],
    held_out: Sequence[str],
    text: TextSettings,
    config: AdaptConfig,
    folder: Path,
) -> dict[str, Any]:
    """Chooses the tokens to add, writes them, and says how the held-out text is cut with them.

    Args:
        train: the files of sentences that are trained on.
        held_out: those that are not.
        text: the model's vocabulary and casing.
        config: the options.
        folder: gets `words.txt`, a token a line, and `words.tsv` with what each is worth.

    Returns:
        How many there are, and the `Coverage` before and after.
    """
    counts, other = (_counts(files, text, config) for files in (train, held_out))
    chosen = choose_words(counts, text, config.words)
    with open_whole(folder / "words.tsv") as file:
        file.write("token\tcount\tsaving\n")
        file.writelines(f"{one.token}\t{one.count}\t{one.saving}\n" for one in chosen)
    with open_whole(folder / "words.txt") as file:
        file.writelines(f"{one.token}\n" for one in chosen)
    alphabet = len(set().union(*counts, *other))
    own = text.vocabulary.tokens
    vocabularies = {"before": own, "after": (*own, *(one.token for one in chosen))}
    return {
        "new_tokens": len(chosen),
        **{
            name: dataclasses.asdict(_coverage(other, Vocabulary(tokens), alphabet))
            for name, tokens in vocabularies.items()
        },
    }


def _counts(files: Sequence[str], text: TextSettings, config: AdaptConfig) -> dict[str, int]:
    reading = Reading(input_format="text")
    asked = LearnVocabularyConfig(
        input_file=files,
        vocab_file="",
        do_lower_case=text.do_lower_case,
        strip_accents=text.strip_accents,
        num_workers=config.num_workers,
        reading=reading,
    )
    return count_words(asked, find_sources(files, reading.input_format))[0]


def _coverage(counts: dict[str, int], vocabulary: Vocabulary, alphabet: int) -> Coverage:
    found = coverage(counts, vocabulary)
    unknown = {word: n for word, n in counts.items() if split_tokens(word, vocabulary) == [UNK]}
    characters = sum(len(word) * n for word, n in unknown.items())
    length = characters / max(sum(unknown.values()), 1)
    return Coverage(found.words, found.tokens_per_word, found.unknown_share, length, alphabet)


def _check_held_out(steps: Steps) -> None:
    """Sees that both parts of the text have documents enough to take other sentences from.

    Raises:
        UserError: one has less than two.
    """
    for held_out in (True, False):
        text = b"".join(map(_beginning, steps.sentences(held_out=held_out)))
        documents = text.rstrip(b"\n").count(b"\n\n") + bool(text.strip())
        if documents < _FEWEST:
            part = "is held out" if held_out else "is trained on"
            raise UserError(
                f"{steps.config.input_file[0]}: only {documents} document"
                f"{'s' * (documents != 1)} of the text {part}, and pairs of sentences need two; "
                "give more text, separate documents by empty lines, or change `held_out_every="
                f"{steps.config.held_out_every}`."
            )


_FEWEST, _LOOKED_AT = 2, 1 << 20


def _beginning(path: Path) -> bytes:
    with open_input(path, may_be_empty=True) as file:
        return file.read(_LOOKED_AT)


def _missing_heads(source: ModelSource) -> list[str]:
    """What a model has no head for."""
    if source.checkpoint is None or is_google_checkpoint(source.checkpoint):
        return []  # google's have both; TensorFlow would have to be loaded to look
    tensors = source.tensors()
    return [
        words
        for head, words in _HEADS.items()
        if any(tensors.find(names) is None for names in head_names(head))
    ]


def _commands_of(folder: Path) -> list[str] | None:
    """The commands that the model of an earlier call came from."""
    try:
        return read_typed(folder / "adaptation.json", _Made, "it is made again")["commands"]
    except UserError:
        return None


class _Made(TypedDict):
    commands: list[str]
