"""The task of a run that trains vectors: from files and options to batches, figures, a model."""

import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.sentence_modules import (
    SentenceSettings,
    read_sentence_settings,
    restore_pooler,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.training.learning_curve import CurveStyle, Guess
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.start import FilesOfSplits, TaskBuilder, starting_point
from pipelines.fine_tuning.task import Answered, Facts, Head, TrainingRows
from pipelines.fine_tuning.text_rows import TextExample, text_rows
from pipelines.metrics.retrieval import (
    bm25_rankings,
    nearest_accuracy,
    need_bm25,
    pair_scores,
    ranking_figures,
    retrieval_figures,
    similarity_figures,
    triplet_accuracy,
)
from pipelines.records.rows import Rows
from pipelines.tables.columns import check_columns
from pipelines.tables.files import TableFile, open_table
from pipelines.tasks.vectors.files import (
    CLASSES,
    MARGINS,
    PAIRS,
    SCORES,
    TRIPLES,
    VectorColumns,
    VectorData,
    choose_vector_columns,
    read_vector_data,
)
from pipelines.tasks.vectors.options import LOSSES_OF, MiningConfig, RunEmbedderConfig

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer
    from pipelines.fine_tuning.run import FineTuningResults
    from pipelines.tasks.vectors.batches import VectorBatches

NAME = "embedder"
_LOGGER = logging.getLogger(__name__)

_DRAWN: Mapping[str, tuple[str, ...]] = {
    PAIRS: ("ndcg@10", "mrr@10", "recall@10"),
    TRIPLES: ("ndcg@10", "mrr@10", "triplet_accuracy"),
    SCORES: ("spearman", "pearson"),
    MARGINS: ("ndcg@10", "mrr@10", "triplet_accuracy"),
    CLASSES: ("nearest_accuracy",),
}
"""The figures of each kind of data, the one that decides first."""

_MINED = "mined_negatives.npy"
_BEST_RANK = 100  # of BM25


@dataclass(frozen=True)
class VectorTask(FilesOfSplits):
    """Vectors of texts; see `pipelines.fine_tuning.task.Task`.

    Its examples are the texts of a table, each once; which of them stand in a row is `sources`'.
    """

    NEEDED: ClassVar = "a table of texts that belong together"

    sources: Mapping[str, VectorData]
    sentence_settings: SentenceSettings
    folder: Path
    loss: str = ""
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    texts_at_once: int = 32
    mining: MiningConfig = field(default_factory=MiningConfig)
    score_range: tuple[float, float] = (0.0, 1.0)
    name: str = NAME
    train_split: str = "train"

    @property
    def evaluation_splits(self) -> list[str]:
        """The dev and the test file."""
        return [split for split in ("dev", "test") if split in self.sources]

    @property
    def test_splits(self) -> list[str]:
        """None: vectors are written by the tool embed."""
        return []

    @property
    def evaluates_start(self) -> bool:
        """A trained encoder has vectors before it is trained for them."""
        return True

    @property
    def settings(self) -> dict[str, Any]:
        """What stands for the rows of the training file, and for those that are mined."""
        if self.train_split not in self.sources:
            return {}
        data = self.source(self.train_split)
        labels = b"" if data.labels is None else data.labels.tobytes()
        mined = json_text(asdict(self.mining)).encode()
        return {"rows_crc32": f"{zlib.crc32(data.rows.tobytes() + labels + mined):08x}"}

    def files(self, split: str) -> list[Path]:
        """The split's file."""
        return [Path(self.source(split).name)]

    def examples(self, split: str) -> Iterator[TextExample]:
        """The texts of a split, each once; `identifier` is the split, `line` is 1 of a query."""
        data = self.source(split)
        queries = set(data.queries.tolist())
        for number, (prompt, text) in enumerate(data.texts):
            yield TextExample(split, prompt + text, line=int(number in queries))

    def texts(self, example: TextExample) -> list[str]:
        """See `Task.texts`."""
        return [example.text_a]

    def facts(self, example: TextExample) -> Facts:
        """Documents may be in several files: that they are searched in is no mistake."""
        data = self.source(example.identifier)
        return Facts(compared=data.kind in (SCORES, CLASSES) or example.line > 0)

    def rows(
        self,
        examples: Sequence[TextExample],
        tokenizer: "LineTokenizer",
        max_seq_length: int,
        *,
        training: bool,
    ) -> Rows:
        """A row for each text; see `Task.rows`."""
        del training
        return text_rows(examples, tokenizer, max_seq_length)

    def configure(self, config: "BertConfig") -> "BertConfig":
        """See `Task.configure`."""
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
            loss = MatryoshkaLoss(loss, settings.dimensions)
        # No rows have the feature: a loss of one text does not exist, so figures decide.
        return Head(model, VectorObjective(loss, self.loss == "batch_hard"), ("of_no_row",))

    def restored(self, model: Any, start: ModelSource) -> None:
        """Gives the pooler the weights that sentence-transformers' files hold, where they do."""
        restore_pooler(model.encoder.pooler.weights, start.folder)

    def sentence(self, max_seq_length: int) -> SentenceSettings:
        """How a text becomes a vector, for the model's folder."""
        return replace(self.sentence_settings, max_seq_length=max_seq_length)

    def num_training_rows(self, rows: Any) -> int:
        """How many rows of texts there are."""
        del rows
        return len(self.source(self.train_split).rows)

    def batches(self, training: TrainingRows) -> "VectorBatches":
        """The batches of the training split; see `TaskDefaults.batches`."""
        from keras_bert_impl.losses import loss_named
        from pipelines.tasks.vectors.batches import VectorBatches, keys_of

        data = self.source(self.train_split)
        rows = self._with_mined(data, training) if self.mining.mine_negatives else data.rows
        low, high = self.score_range
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
            fixed_length=training.fixed_length,
        )

    def _with_mined(self, data: VectorData, training: TrainingRows) -> NDArray[np.int32]:
        """The rows with the negatives that were found, in this run or before it was stopped."""
        from pipelines.vectors.mining import mine_negatives

        path, mining = training.folder / _MINED, self.mining
        if path.is_file():  # an encoder's last bits may differ from one start to the next
            return np.load(path, allow_pickle=False)
        vectors = training.outputs().read(0, len(training.rows))["embedding"]
        mined = mine_negatives(
            vectors[data.queries],
            vectors[data.documents],
            data.relevant,
            count=mining.mine_negatives,
            first_rank=mining.mine_from,
            last_rank=mining.mine_to,
            margin=mining.mine_margin,
            relative_margin=mining.mine_relative_margin,
            texts=(_words(data, data.queries), _words(data, data.documents)),
        )
        _LOGGER.info(
            "mined negatives: %.1f %% of the candidates were dropped as probably positive; %d of "
            "%d queries had too few and get random documents",
            *(100 * mined.share_dropped, mined.num_too_few, len(data.queries)),
        )
        negatives = _random_documents(data, mining.mine_negatives, training.seed)
        negatives[mined.queries] = mined.negatives
        of_rows = np.searchsorted(data.queries, data.rows[:, 0])
        rows = np.concatenate([data.rows, data.documents[negatives[of_rows]]], axis=1)
        with open_whole(path, "wb") as file:
            np.save(file, rows)
        return rows

    def answers(
        self, examples: Sequence[TextExample], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> list[NDArray[np.float32]]:
        """The vector of each text."""
        del examples, rows
        return list(outputs["embedding"])

    @property
    def deciding_figure(self) -> str:
        """The main figure of the dev file."""
        return self.compared_figures[0]

    @property
    def compared_figures(self) -> Sequence[str]:
        """The figures that say which run is better; see `TaskDefaults`."""
        splits = self.evaluation_splits or [self.train_split]
        return _DRAWN[self.source(splits[0]).kind]

    @property
    def curve_style(self) -> CurveStyle:
        """Which figures are drawn."""
        return CurveStyle(self.compared_figures)

    def score(self, answered: Answered[TextExample, NDArray]) -> dict[str, float]:
        """The figures of a split, at each size that its vectors may have; see `Task.score`."""
        examples, vectors = zip(*answered, strict=True)
        data, all_vectors = self.source(examples[0].identifier), np.stack(vectors)
        figures = _figures(data, all_vectors)
        for size in self.sentence_settings.dimensions:
            if size < all_vectors.shape[1]:
                smaller = _figures(data, all_vectors[:, :size])
                shown = {name: smaller[name] for name in _DRAWN[data.kind] if name in smaller}
                figures |= {f"{name}_of_{size}": value for name, value in shown.items()}
        return figures

    def peers(self, split: str) -> dict[str, Guess]:
        """What words alone find; see `TaskDefaults.peers`."""
        data = self.source(split)
        if data.kind not in (PAIRS, TRIPLES, MARGINS):
            return {}
        try:
            need_bm25()
        except UserError as error:
            _LOGGER.info("There are no figures of BM25 beside the model's: %s", error)
            return {}
        texts = [text for _, text in data.texts]
        rankings = bm25_rankings(
            [texts[number] for number in data.queries],
            [texts[number] for number in data.documents],
            _BEST_RANK,
        )
        right = [
            [number in wanted for number in ranking]
            for ranking, wanted in zip(rankings, data.relevant, strict=True)
        ]
        found = ranking_figures(right, [len(wanted) for wanted in data.relevant])
        return {name: Guess("BM25, by words alone", value) for name, value in found.items()}

    def write(self, folder: Path, split: str, answered: Any) -> Sequence[Path]:
        """Nothing: vectors are written by the tool embed."""
        del folder, split, answered
        return ()

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        """As any encoder; see `Task.served`."""
        from keras_bert_impl.serving.export import serve_model

        return serve_model(opened, 1, max_seq_length)


def _words(data: VectorData, numbers: NDArray[np.int32]) -> list[str]:
    """What texts say without their prompts."""
    return [data.texts[number][1] for number in numbers]


def _random_documents(data: VectorData, count: int, seed: int) -> NDArray[np.int64]:
    """Documents for each query that are not its own: int64 [queries, count]."""
    draws = np.random.default_rng(seed)
    found = draws.integers(len(data.documents), size=(len(data.queries), count))
    for row, own in zip(found, data.relevant, strict=True):
        for place in range(count):
            tries = 0
            while int(row[place]) in own and (tries := tries + 1) < 100:
                row[place] = draws.integers(len(data.documents))
    return found


def _figures(data: VectorData, vectors: NDArray[np.float32]) -> dict[str, float]:
    """The figures of a table's vectors: [texts, size]."""
    if data.kind == CLASSES:
        return {"nearest_accuracy": nearest_accuracy(vectors, data.classes.tolist())}
    if data.kind == SCORES:
        assert data.labels is not None, "scores are labels"
        first, second = (vectors[data.rows[:, column]] for column in (0, 1))
        return similarity_figures(pair_scores(first, second), data.labels)
    figures = retrieval_figures(vectors[data.queries], vectors[data.documents], data.relevant)
    if data.rows.shape[1] > 2:
        anchors, positives, negatives = (vectors[data.rows[:, column]] for column in (0, 1, 2))
        figures["triplet_accuracy"] = triplet_accuracy(anchors, positives, negatives)
    return figures


class _Builder(TaskBuilder):
    """From the options of a run to its task."""

    CONFIG: ClassVar = RunEmbedderConfig
    TRAINING_IS_MISSING: ClassVar = "`do_train=True`: there is no file; name one with `train_file`."
    FILES_ARE_MISSING: ClassVar = "there is no file; name one with `train_file` or `dev_file`."
    NOTHING_TO_SCORE: ClassVar = (
        "`do_eval=True`: there is no file to evaluate; name one with `dev_file`."
    )

    def __init__(self, config: Any, trained: ModelSource | None, run: RunEmbedderConfig) -> None:
        super().__init__(config, trained)
        self._run = run
        self._settings = _sentence_settings(run)

    def _open(self, split: str, name: str) -> TableFile:
        del split
        return open_table(name, header=self._config.has_header, encoding=self._config.text_encoding)

    def _find(self, files: Mapping[str, TableFile]) -> dict[str, VectorColumns]:
        """Each file's own columns: a dev file may judge by scores what pairs have trained."""
        config = self._config
        named = (config.query_column, config.document_column, config.negative_column)
        return {
            split: choose_vector_columns(file, *named, config.label_column)
            for split, file in files.items()
        }

    def _check(self, split: str, file: TableFile, found: Mapping[str, VectorColumns]) -> VectorData:
        prompts = self._settings.prompts
        both = (prompts.get("query", ""), prompts.get("document", ""))
        check_columns(file, found[split].texts)
        return read_vector_data(file, found[split], both, self._run.training.seed)

    def _make(self, sources: Mapping[str, VectorData], found: Any) -> VectorTask:
        run = self._run
        del found
        task = VectorTask(sources, self._settings, run.output_dir)
        if "train" not in sources:
            return task
        data = sources["train"]
        loss = _loss_for(data, run.loss)
        task = replace(
            task,
            loss=loss,
            loss_options=run.loss_options(loss),
            texts_at_once=run.texts_at_once,
            mining=run.mining,
            score_range=_score_range(data),
        )
        _check_loss(task)
        _LOGGER.info(
            "%s: %s rows of the kind %s, %s texts; loss %s",
            *(data.name, f"{len(data.rows):,}", data.kind, f"{len(data.texts):,}", task.loss),
        )
        return task


def _sentence_settings(run: RunEmbedderConfig) -> SentenceSettings:
    """How texts become vectors: as the options say, else the model that training starts from."""
    start = starting_point(run, RunDirectory(run.output_dir))
    kept = read_sentence_settings(start.folder) or SentenceSettings()
    given: dict[str, Any] = {"pooling": run.pooling, "normalize": run.normalize}
    given["dimensions"] = run.matryoshka_dims or None
    size = start.config.hidden_size
    if too_large := [one for one in run.matryoshka_dims if one > size]:
        raise UserError(
            f"`matryoshka_dims={too_large[0]}`: the model's vectors have {size} numbers; give "
            "sizes up to that."
        )
    prompts = {"query": run.query_prompt, "document": run.document_prompt}
    named = {name: text for name, text in prompts.items() if text is not None}
    if named:
        given["prompts"] = {**kept.prompts, **named}
    return replace(kept, **{name: value for name, value in given.items() if value is not None})


def _loss_for(data: VectorData, wanted: str | None) -> str:
    names = LOSSES_OF[data.kind]
    if wanted is None:
        return names[0]
    if wanted not in names:
        raise UserError(
            f"`loss={wanted}` is not for {data.kind}, which {data.name} has; choose "
            f"{', '.join(names)}."
        )
    return wanted


def _score_range(data: VectorData) -> tuple[float, float]:
    """The scale of scores: 0 to 1, -1 to 1 (cosines), 0 to 5, 0 to 100, or as they are."""
    if data.kind != SCORES or data.labels is None:
        return 0.0, 1.0
    low, high = float(data.labels.min()), float(data.labels.max())
    if low == high:
        raise UserError(f"{data.name}: all scores are {low:g}; there is nothing to learn.")
    if -1.0 <= low < 0.0 and high <= 1.0:
        return 0.0, 1.0  # cosines, which stay what they are
    bounds = [bound for bound in (1.0, 5.0, 10.0, 100.0) if high <= bound]
    found = (0.0, bounds[0]) if low >= 0.0 and bounds else (low, high)
    if found != (0.0, 1.0):
        _LOGGER.info("%s: scores from %g to %g are 0 to 1 in the loss.", data.name, *found)
    return found


def _check_loss(task: VectorTask) -> None:
    """Makes the loss once, so that an option which it does not have is refused before anything."""
    from keras_bert_impl.losses import loss_named

    try:
        loss_named(task.loss, **task.loss_options)
    except TypeError as error:
        flags = {"scale": "similarity_scale", "similarity": "similarity"}
        given = " and ".join(f"`{flags.get(name, 'loss_margin')}`" for name in task.loss_options)
        raise UserError(
            f"{given}: one of them is not for `loss={task.loss}`; leave it out."
        ) from error


def run_embedder(config: RunEmbedderConfig) -> "FineTuningResults":
    """Trains vectors of texts; see `fine_tune`."""
    from pipelines.fine_tuning.run import fine_tune  # TensorFlow

    return fine_tune(config, task_of)


def task_of(config: RunEmbedderConfig) -> VectorTask:
    """The task that a configuration's files make."""
    trained = None if config.do_train else starting_point(config, RunDirectory(config.output_dir))
    task: VectorTask = _Builder(config.files, trained, config).task()
    if config.do_eval and not task.evaluation_splits:
        raise UserError(_Builder.NOTHING_TO_SCORE)
    return task
