"""The task of a run that trains vectors: from files and options to batches, figures, a model."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.sentence_modules import (
    DOCUMENT,
    OTHER_NAMES,
    QUERY,
    SentenceSettings,
    read_sentence_settings,
    restore_pooler,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.serving import smaller_vectors
from keras_bert_impl.training.learning_curve import Guess
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.heads import TextTask
from pipelines.fine_tuning.start import FilesOfSplits, TaskBuilder, starting_point
from pipelines.fine_tuning.task import NO_LABELS, Answered, Facts, Head, TrainingRows
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics import retrieval
from pipelines.records.rows import Rows
from pipelines.tables.files import TableFile
from pipelines.tasks.vectors.files import (
    CLASSES,
    MARGINS,
    PAIRS,
    SCORES,
    TRIPLES,
    VectorColumns,
    VectorData,
    choose_vector_columns,
    others_of,
    read_vector_data,
)
from pipelines.tasks.vectors.options import LOSSES_OF, MiningConfig, RunEmbedderConfig
from pipelines.vectors.nearest import pair_scores

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from pipelines.tasks.vectors.batches import VectorBatches

_LOGGER = logging.getLogger(__name__)

_DRAWN: Mapping[str, tuple[str, ...]] = {
    PAIRS: ("ndcg@10", "mrr@10", "recall@10"),
    TRIPLES: ("ndcg@10", "mrr@10", "triplet_accuracy"),
    SCORES: ("spearman", "pearson"),
    MARGINS: ("ndcg@10", "mrr@10", "triplet_accuracy"),
    CLASSES: ("nearest_accuracy",),
}
"""The figures of each kind of data, the one that decides first."""

_MINED = "mined_negatives.npz"
_BEST_RANK = 100  # of BM25


@dataclass(frozen=True)
class VectorTask(FilesOfSplits, TextTask):
    """Vectors of the texts of a table, each once; `sources` say what stands in a row."""

    NEEDED: ClassVar = "a table of texts that belong together"
    joins = False
    test_splits: ClassVar[Sequence[str]] = ()  # vectors are written by the tool embed
    evaluates_start = True

    sources: Mapping[str, VectorData]
    sentence_settings: SentenceSettings
    loss: str = ""
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    texts_at_once: int = 32
    mining: MiningConfig = field(default_factory=MiningConfig)
    score_range: tuple[float, float] = (0.0, 1.0)
    name: str = "embedder"
    train_split: str = "train"

    @property
    def evaluation_splits(self) -> list[str]:
        return [split for split in ("dev", "test") if split in self.sources]

    @property
    def settings(self) -> dict[str, Any]:
        """What stands for the rows of the training file, and for those that are mined."""
        if self.train_split not in self.sources:
            return {}
        mined = json_text(asdict(self.mining))
        return {"rows_crc32": self.source(self.train_split).rows_crc32(mined)}

    def files(self, split: str) -> list[Path]:
        return [Path(self.source(split).name)]

    def examples(self, split: str) -> Iterator[TextExample]:
        """The texts of a split, each once; `identifier` is the split, `line` is 1 of a query."""
        data = self.source(split)
        queries = set(data.queries.tolist())
        for number, (prompt, text) in enumerate(data.texts):
            yield TextExample(split, prompt + text, line=int(number in queries))

    def facts(self, example: TextExample) -> Facts:
        """Documents may be in several files: that they are searched in is no mistake."""
        data = self.source(example.identifier)
        return Facts(compared=data.kind in (SCORES, CLASSES) or example.line > 0)

    def configure(self, config: "BertConfig") -> "BertConfig":
        return config

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        """The encoder with its pooling, and the loss; see `Task.head`."""
        from keras_bert_impl.losses import MatryoshkaLoss, loss_named
        from keras_bert_impl.models.embedder import BertEmbedder
        from keras_bert_impl.training.vector_step import VectorObjective

        settings = self.sentence_settings
        model = BertEmbedder(config, settings.pooling, settings.normalize, dtype=dtype)
        loss = loss_named(self.loss, **self.loss_options) if self.loss else None
        if settings.dimensions and loss is not None:
            loss = MatryoshkaLoss(loss, sorted({*settings.dimensions, config.hidden_size}))
        # A loss of one text does not exist.
        return Head(model, VectorObjective(loss, self.loss == "batch_hard"), NO_LABELS)

    def restored(self, model: Any, start: ModelSource) -> None:
        """Gives the pooler the weights that sentence-transformers' files hold, where they do."""
        restore_pooler(model.encoder.pooler.weights, start.folder)

    @property
    def max_seq_length(self) -> int | None:
        return self.sentence_settings.max_seq_length

    def identity(self, split: str) -> str:
        """What figures depend on besides the texts: rows, labels, how vectors are compared."""
        settings = self.sentence_settings
        how = f"{settings.pooling} {settings.normalize} {settings.similarity}"
        return f", rows {self.source(split).rows_crc32(how)}"

    def sentence(self, max_seq_length: int) -> SentenceSettings:
        return replace(self.sentence_settings, max_seq_length=max_seq_length)

    def num_training_rows(self, rows: Any) -> int:
        del rows
        return len(self.source(self.train_split).rows)

    def batches(self, training: TrainingRows) -> "VectorBatches":
        from keras_bert_impl.losses import loss_named
        from pipelines.tasks.vectors.batches import VectorBatches, keys_of

        data = self.source(self.train_split)
        rows = self._with_mined(data, training) if self.mining.mine_negatives else data.rows
        low, high = np.array(self.score_range, np.float32)  # so that the greatest is 1 exactly
        labels = data.labels
        if labels is not None and data.kind == SCORES:
            labels = (labels - low) / (high - low)
        in_batch = loss_named(self.loss).in_batch
        return VectorBatches(
            training.rows,
            rows,
            labels,
            keys_of(training.rows, rows, data) if in_batch else None,
            batch_size=training.batch_size,
            seed=training.seed,
            texts_at_once=self.texts_at_once,
            replicas=training.replicas,
            rule=training.length_rule,
        )

    def _with_mined(self, data: VectorData, training: TrainingRows) -> NDArray[np.int32]:
        """The rows with the negatives that were found, in this run or before it was stopped."""
        from pipelines.vectors.mining import mine_negatives

        path, mining = training.folder / _MINED, self.mining
        identity = f"{training.identity} {self.settings} {self.sentence_settings.similarity}"
        with contextlib.suppress(OSError, ValueError, KeyError), np.load(path) as kept:
            if str(kept["identity"]) == identity:  # an encoder's last bits may differ since
                return kept["rows"]
        vectors = training.outputs().read(0, len(training.rows))["embedding"]
        mined = mine_negatives(
            *(vectors[data.queries], vectors[data.documents], data.relevant),
            texts=(data.words(data.queries), data.words(data.documents)),
            count=mining.mine_negatives,
            first_rank=mining.mine_from,
            last_rank=mining.mine_to,
            margin=mining.mine_margin,
            relative_margin=mining.mine_relative_margin,
            score=self.sentence_settings.similarity,
        )
        _LOGGER.info(
            "mined negatives: %.1f %% of the candidates were dropped as probably positive; %d of "
            "%d queries had too few and get random documents",
            *(100 * mined.share_dropped, len(data.queries) - len(mined.queries), len(data.queries)),
        )
        negatives = _random_documents(data, mining.mine_negatives, training.seed)
        negatives[mined.queries] = mined.negatives
        of_rows = np.searchsorted(data.queries, data.rows[:, 0])
        rows = np.concatenate([data.rows, data.documents[negatives[of_rows]]], axis=1)
        with open_whole(path, "wb") as file:
            np.savez(file, rows=rows, identity=np.array(identity))
        return rows

    def answers(
        self, examples: Sequence[TextExample], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> list[NDArray[np.float32]]:
        del examples, rows
        return list(outputs["embedding"])

    @property
    def compared_figures(self) -> Sequence[str]:
        splits = self.evaluation_splits or [self.train_split]
        return _DRAWN[self.source(splits[0]).kind]

    def score(self, answered: Answered[TextExample, NDArray]) -> dict[str, float]:
        """The figures of a split, at each size that its vectors may have; see `Task.score`."""
        examples, vectors = zip(*answered, strict=True)
        data, all_vectors = self.source(examples[0].identifier), np.stack(vectors)
        width, settings = all_vectors.shape[1], self.sentence_settings
        figures = _figures(data, all_vectors, settings.similarity)
        smaller = {
            f"of_{size}": smaller_vectors.truncated(all_vectors, size, settings.normalize)
            for size in settings.dimensions
            if size < width
        }
        ranges = smaller_vectors.ranges_of([all_vectors])
        for kind in (smaller_vectors.INT8, smaller_vectors.UBINARY):
            some = smaller_vectors.quantized(all_vectors, kind, ranges)
            smaller[kind] = smaller_vectors.restored(some, width, ranges)
        for how, some in smaller.items():
            found = _figures(data, some, settings.similarity)
            figures |= {f"{name}_{how}": found[name] for name in _DRAWN[data.kind][:1]}
        return figures

    def drawn_scores(
        self, answered: Sequence[tuple[Any, Any]], draws: np.random.Generator
    ) -> Iterator[Mapping[str, Any]]:
        """Draws rows and queries of the table, or texts of classes; see `TaskDefaults`."""
        split = answered[0][0].identifier
        classes, vectors = self.source(split).classes, np.stack([one for _, one in answered])
        hits = None if classes is None else retrieval.nearest_hits(vectors, classes.tolist())
        while hits is not None:
            yield {"nearest_accuracy": float(draws.choice(hits, len(hits)).mean())}
        while True:
            drawn = self.source(split).drawn(draws)
            yield replace(self, sources={**self.sources, split: drawn}).score(answered)

    def peers(self, split: str) -> dict[str, Guess]:
        data = self.source(split)
        if data.kind not in (PAIRS, TRIPLES, MARGINS):
            return {}
        try:
            retrieval.need_bm25()
        except UserError as error:
            _LOGGER.info("There are no figures of BM25 beside the model's: %s", error)
            return {}
        texts = data.words(data.queries), data.words(data.documents)
        rankings = retrieval.bm25_rankings(*texts, _BEST_RANK)
        right = [
            [number in wanted for number in ranking]
            for ranking, wanted in zip(rankings, data.relevant, strict=True)
        ]
        found = retrieval.ranking_figures(right, [len(wanted) for wanted in data.relevant])
        return {name: Guess("BM25, by words alone", value) for name, value in found.items()}

    def write(self, folder: Path, split: str, answered: Any) -> Sequence[Path]:
        del folder, split, answered
        return ()


def _random_documents(data: VectorData, count: int, seed: int) -> NDArray[np.int64]:
    """Documents for each query that may be wrong ones: int64 [queries, count]."""
    draws, size = np.random.default_rng(seed), len(data.documents)
    if (most := max(map(len, data.never))) > size - count:
        raise UserError(
            f"{data.name}: a query has {most} of the {size} documents, so that {count} others are "
            "missing; leave `mine_negatives` out."
        )
    return np.array([others_of(own, size, count, draws) for own in data.never], np.int64)


def _figures(data: VectorData, vectors: NDArray[np.float32], score: str) -> dict[str, float]:
    """The figures of a table's vectors: [texts, size]."""
    if data.classes is not None:
        return {"nearest_accuracy": retrieval.nearest_accuracy(vectors, data.classes.tolist())}
    if data.kind == SCORES:
        assert data.labels is not None, "scores are labels"
        first, second = (vectors[texts] for texts in data.rows.T)
        return retrieval.similarity_figures(pair_scores(first, second, score), data.labels)
    queries, documents = vectors[data.queries], vectors[data.documents]
    figures = retrieval.retrieval_figures(queries, documents, data.relevant, score)
    if data.rows.shape[1] > 2:
        query, right, wrong = (vectors[texts] for texts in data.rows.T[:3])
        figures["triplet_accuracy"] = retrieval.triplet_accuracy(query, right, wrong, score)
    return figures


class _Builder(TaskBuilder):
    """From the options of a run to its task."""

    CONFIG = RunEmbedderConfig
    TRAINING_IS_MISSING = "`do_train=True`: there is no file; name one with `train_file`."
    FILES_ARE_MISSING = "there is no file; name one with `train_file` or `dev_file`."
    NOTHING_TO_SCORE = "`do_eval=True`: there is no file to evaluate; name one with `dev_file`."

    @cached_property
    def _settings(self) -> SentenceSettings:
        return _sentence_settings(self._run)

    def _find(self, files: Mapping[str, TableFile]) -> dict[str, VectorColumns]:
        """Each file's own columns: a dev file may judge by scores what pairs have trained."""
        config, found = self._config, {}
        there = {column for file in files.values() for column in file.columns}
        for split, file in files.items():
            others = there - {*file.columns}  # what only another file has is not asked for here
            named = (config.query_column, config.document_column, config.label_column)
            query, document, label = (None if name in others else name for name in named)
            negatives = [name for name in config.negative_column if name not in others]
            chosen = choose_vector_columns(file, query, document, negatives, label)
            texts_say_it = len(chosen.texts) > 1 and not self._reads_labels(split)
            found[split] = replace(chosen, label=None) if texts_say_it else chosen
        return found

    def _check(self, split: str, file: TableFile, found: Mapping[str, VectorColumns]) -> VectorData:
        prompts = [self._settings.prompt_of(name) for name in (QUERY, DOCUMENT, None)]
        data = read_vector_data(file, found[split], prompts, self._run.training.seed)
        used = sorted({prompt for prompt, _ in data.texts if prompt})
        if used:
            _LOGGER.info("%s: in front of texts: %s", file.name, ", ".join(map(repr, used)))
        scores = data.labels if data.kind == SCORES else None
        has_scale = split == "train" and self._run.score_range
        if scores is not None and scores.min() == scores.max() and not has_scale:
            raise UserError(f"{file.name}: all scores are the same; there is nothing to compare.")
        return data

    def _make(self, sources: Mapping[str, VectorData], found: Any) -> VectorTask:
        run = self._run
        del found
        task = VectorTask(sources, self._settings)
        if "train" not in sources:
            similarity = run.similarity or self._settings.similarity
            return replace(task, sentence_settings=replace(self._settings, similarity=similarity))
        data, settings = sources["train"], self._settings
        has_default = any(source.kind in (SCORES, CLASSES) for source in sources.values())
        if not has_default and (run.query_prompt, run.document_prompt) != (None, None):
            settings = _with_prompts_of_pairs(settings)
        loss = _loss_for(data, run.loss, run.mining.mine_negatives)
        given = run.loss_options(loss)
        dot = "dot" if loss == "margin_mse" or settings.similarity == "dot" else "cosine"
        similarity = run.similarity or dot
        if similarity == "dot" and loss in ("mnrl", "mnrl_symmetric", "mnrl_all", "cosent"):
            given = {**given, "similarity": similarity}
            if not (settings.normalize or settings.dimensions):  # Matryoshka scales
                given = {"scale": 1.0, **given}  # products of such vectors are far above cosines
        task = replace(
            task,
            sentence_settings=replace(settings, similarity=similarity),
            loss=loss,
            loss_options=given,
            texts_at_once=run.texts_at_once,
            mining=run.mining,
            score_range=_score_range(data, loss, run.score_range),
        )
        _check_loss(task, data)
        _LOGGER.info(
            "%s: %s rows of the kind %s, %s texts; loss %s",
            *(data.name, f"{len(data.rows):,}", data.kind, f"{len(data.texts):,}", task.loss),
        )
        return task


def _sentence_settings(run: RunEmbedderConfig) -> SentenceSettings:
    """How texts become vectors: as the options say, else the model that training starts from."""
    start = starting_point(run, RunDirectory(run.output_dir))
    kept = None if start.checkpoint is None else read_sentence_settings(start.folder)
    kept = kept or SentenceSettings()
    size = start.config.hidden_size
    if too_large := [one for one in run.matryoshka_dims if one > size]:
        raise UserError(f"`matryoshka_dims={too_large[0]}` must be at most the model's {size}.")
    prompts = {QUERY: run.query_prompt, DOCUMENT: run.document_prompt}
    named = {name: text for name, text in prompts.items() if text is not None}
    # They replace what the same texts were called before.
    others = {x: text for x, text in kept.prompts.items() if OTHER_NAMES.get(x) not in named}
    replaced = (text for name, text in named.items() if kept.prompt == kept.prompt_of(name) != "")
    given: dict[str, Any] = {
        "prompt": next(replaced, None),  # the default one was one of them
        "pooling": run.pooling,
        "normalize": run.normalize,
        "dimensions": run.matryoshka_dims or None,
        "prompts": {**others, **named},
    }
    return replace(kept, **{name: value for name, value in given.items() if value is not None})


def _with_prompts_of_pairs(settings: SentenceSettings) -> SentenceSettings:
    """Without prompts that neither queries nor documents had in training."""
    used = {settings.prompt_of(name) for name in (QUERY, DOCUMENT)}
    prompts = {name: text for name, text in settings.prompts.items() if text in used}
    prompt = settings.prompt if settings.prompt in used else ""
    return replace(settings, prompt=prompt, prompts=prompts)


def _loss_for(data: VectorData, wanted: str | None, mined: int) -> str:
    names = LOSSES_OF[TRIPLES if data.kind == PAIRS and mined else data.kind]
    if wanted is None:
        return names[0]
    if wanted not in names:
        raise UserError(f"`loss={wanted}` is not for {data.kind}; choose {', '.join(names)}.")
    return wanted


def _score_range(data: VectorData, loss: str, given: Sequence[float]) -> tuple[float, float]:
    """The scale of scores: see `RunEmbedderConfig.score_range`."""
    if data.kind != SCORES or data.labels is None:
        return 0.0, 1.0
    low, high = given or (0.0, 1.0)
    most_off = (0.5 + _ROUNDING) * (high - low)
    outside = data.labels[np.abs(data.labels - (low + high) / 2) > most_off]
    if given and len(outside):
        raise UserError(
            f"{data.name}: the score {outside[0]:g} is outside of {low:g} to {high:g}; correct it, "
            "or give another `score_range`."
        )
    ends = np.array([low, high], np.float32)
    if loss.endswith("contrastive") and not np.isin(data.labels, ends).all():
        raise UserError(f"`loss={loss}` needs scores of {low:g} and {high:g}; choose another loss.")
    if given:
        return low, high
    low, high = float(data.labels.min()), float(data.labels.max())
    if low >= -1 - _ROUNDING and high <= 1 + _ROUNDING:
        return 0.0, 1.0  # cosines, which stay what they are
    known = (most for most in (5.0, 100.0) if low >= 0 and 0.8 * most < high <= most)
    most = next(known, None)
    found = (low, high) if most is None else (0.0, most)
    _LOGGER.info(
        "%s: in the loss scores from %g to %g are 0 to 1; `score_range` gives others.",
        *(data.name, *found),
    )
    return found


_ROUNDING = 1e-3


def _check_loss(task: VectorTask, data: VectorData) -> None:
    """Makes the loss once, so that what it does not have or take is refused before anything."""
    from keras_bert_impl.losses import loss_named

    try:
        loss = loss_named(task.loss, **task.loss_options)
    except TypeError as error:
        raise UserError(
            "one of `similarity`, `similarity_scale` and `loss_margin` is not for "
            f"`loss={task.loss}`; leave it out."
        ) from error
    mined = task.mining.mine_negatives
    if mined and data.kind not in (PAIRS, TRIPLES):
        raise UserError(f"`mine_negatives` is for queries and documents, not for {data.kind}.")
    columns, (fewest, most) = data.rows.shape[1] + mined, loss.columns
    if data.kind != CLASSES and not fewest <= columns <= (most or columns):
        raise UserError(f"`loss={task.loss}` takes rows of {most} texts, and not of {columns}.")


def task_of(config: RunEmbedderConfig) -> VectorTask:
    """The task that a configuration's files make."""
    task: VectorTask = _Builder.for_run(config, config.files)
    return task
