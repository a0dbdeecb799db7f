"""Documents for queries: a cross-encoder learns which ones are right, and is judged by their order.

Files are those of vectors: pairs, triples, inference, or a query, a document and a number, which is
more than 0 where the document is right. A file with numbers of 0 lists the candidates of each
query in their order. Of others they are what BM25, or a model of vectors, finds among all documents
of the file.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.sentence_modules import DOCUMENT, QUERY
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import nested, option
from keras_bert_impl.progress import Progress
from pipelines.fine_tuning.heads import MultiLabelHead, TextTask
from pipelines.fine_tuning.options import PooledConfig
from pipelines.fine_tuning.task import NO_LABELS, Answered, Head
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics.guessing import Guessing
from pipelines.metrics.retrieval import bm25_rankings, need_bm25, ranking_figures
from pipelines.records.rows import Rows
from pipelines.tables.files import TableFile, open_table
from pipelines.tables.writing import digits, write_table
from pipelines.tasks.vectors.files import (
    CLASSES,
    MARGINS,
    SCORES,
    VectorData,
    choose_vector_columns,
    others_of,
    read_vector_data,
)
from pipelines.tasks.vectors.options import RunEmbedderConfig, VectorFilesConfig
from pipelines.vectors.nearest import nearest

if TYPE_CHECKING:
    from keras_bert_impl.serving.embedder import Embedder

_LOGGER = logging.getLogger(__name__)

_BM25 = "bm25"
_RIGHT, _WRONG = '["relevant"]', "[]"
_FIGURES = ("ndcg@10", "mrr@10")
Ranked = Answered[TextExample, float]
_Lists = dict[int, list[int]]  # the numbers of the documents of each query


@dataclass(frozen=True, kw_only=True)
class RunRerankerConfig(PooledConfig):
    """The options of a run for a cross-encoder."""

    OF_FILES: ClassVar = RunEmbedderConfig.OF_FILES

    files: VectorFilesConfig = nested(VectorFilesConfig, without=("test_file",))
    candidates: str = option(
        _BM25,
        "What finds the documents that are put in order, and the wrong ones to train on where the "
        "file has none for a query: bm25 (which needs the extra search), or a model of vectors.",
    )
    num_candidates: int = option(30, "How many documents are found for a query.", at_least=1)
    num_negatives: int = option(
        4, "How many of them, drawn by the seed, a query is trained with.", at_least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.do_train and not self.files.train_file:
            raise UserError("training needs `train_file`; name a file of queries and documents.")
        if (self.do_eval or self.do_predict) and not self.files.dev_file:
            raise UserError("there is nothing to evaluate; name a file with `dev_file`.")


@dataclass(frozen=True)
class RankingTask(TextTask):
    """Pairs of a query, which is their `identifier`, and a document, right or not; see `Task`."""

    splits: Mapping[str, Sequence[TextExample]]
    relevant: Mapping[str, int]  # how many right documents each query has, found or not
    tables: Mapping[str, TableFile]
    head_of: MultiLabelHead = field(default_factory=lambda: MultiLabelHead(["relevant"]))
    name: str = "reranker"
    train_split: str = "train"

    settings: ClassVar[Mapping[str, Any]] = {"num_texts": 2}
    compared_figures: ClassVar = _FIGURES

    @property
    def evaluation_splits(self) -> Sequence[str]:
        return [split for split in self.splits if split != self.train_split]

    test_splits = evaluation_splits

    def files(self, split: str) -> list[Path]:
        return self.tables[split].paths()

    def examples(self, split: str) -> Sequence[TextExample]:
        return self.splits[split]

    def head(self, config: BertConfig, dtype: Any = None) -> Head:
        """The cross-encoder; the order decides which one is the best.

        A loss would prefer one that knows how rare right documents are among the candidates, and
        nothing else.
        """
        return replace(super().head(config, dtype), labels=NO_LABELS)

    def answers(
        self, examples: Sequence[TextExample], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> list[float]:
        del examples, rows
        return self.head_of.values(outputs["logits"])[:, 0].tolist()

    def score(self, answered: Ranked) -> dict[str, float]:
        """The figures of the order by score, and those of the candidates' own order."""
        given = defaultdict[str, list[tuple[float, bool]]](list)
        for example, score in answered:
            given[example.identifier].append((score, example.label == _RIGHT))
        ordered = {query: sorted(some, key=lambda one: -one[0]) for query, some in given.items()}
        own = self._figures(given)
        return self._figures(ordered) | {f"candidates_{name}": own[name] for name in own}

    def _figures(self, ranked: Mapping[str, Sequence[tuple[float, bool]]]) -> dict[str, float]:
        rankings = [[right for _, right in ranked.get(query, ())] for query in self.relevant]
        found = ranking_figures(rankings, list(self.relevant.values()))
        return {name: found[name] for name in _FIGURES}

    def guessing(self, split: str) -> Guessing:
        return Guessing("in the candidates' order", [(one, 0.0) for one in self.examples(split)])

    def write(self, folder: Path, split: str, answered: Ranked) -> list[Path]:
        """Writes the documents of each query, the best first."""
        best = sorted(answered, key=lambda one: (int(one[0].identifier), -one[1]))
        rows = (
            [example.text_a, example.text_b, int(example.label == _RIGHT), digits(score)]
            for example, score in best
        )
        header = ["query", "document", "label", "score"]
        return [write_table(folder / f"{split}_ranking.tsv", header, rows)]


def task_of(config: RunRerankerConfig) -> RankingTask:
    """Reads the files, and finds the candidates."""
    if config.candidates == _BM25:
        need_bm25()
    tables, splits, relevant = dict[str, TableFile](), dict[str, list[TextExample]](), {}
    wanted = {"train": config.do_train, "dev": config.do_eval or config.do_predict}
    for split in (split for split in wanted if wanted[split]):
        options, name = config.files, str(config.files.file(split))
        table = open_table(name, header=options.has_header, encoding=options.text_encoding)
        named = (options.query_column, options.document_column, options.negative_column)
        columns = choose_vector_columns(table, *named, options.label_column)
        data = read_vector_data(table, columns)
        if data.kind in (CLASSES, MARGINS):
            raise UserError(f"{name}: has {data.kind}; name a file of queries and documents.")
        known = _known(data)
        counts = {str(query): sum(documents.values()) for query, documents in known.items()}
        relevant = {query: count for query, count in counts.items() if count}
        if not relevant:
            raise UserError(f"{name}: no query has a right document; name another file.")
        lists = _documents(config, data, known, training=split == "train")
        alone = sum(bool(some) and all(map(known[one].get, some)) for one, some in lists.items())
        if alone and data.kind == SCORES:
            _LOGGER.warning(
                "%s: %d of %d queries have right documents only, whose order says nothing; give "
                "them wrong ones, with a label of 0.",
                *(name, alone, len(lists)),
            )
        tables[split] = table
        said = [text for _, text in data.texts]
        splits[split] = [
            TextExample(
                str(query), said[query], said[one], _RIGHT if known[query].get(one) else _WRONG
            )
            for query, documents in lists.items()
            for one in documents
        ]
    return RankingTask(splits, relevant, tables)


def _known(data: VectorData) -> dict[int, dict[int, bool]]:
    """The documents that a file has for each query, and which of them are right."""
    known = defaultdict[int, dict[int, bool]](dict)
    for number, (query, first, *negatives) in enumerate(data.rows.tolist()):
        right = data.labels is None or bool(data.labels[number] > 0)
        known[query][first] = right or known[query].get(first, False)
        for negative in negatives:
            known[query].setdefault(negative, False)
    return known


def _documents(
    config: RunRerankerConfig,
    data: VectorData,
    known: Mapping[int, Mapping[int, bool]],
    *,
    training: bool,
) -> _Lists:
    """The documents to put in order, or to train on: those of the file, or some that are found."""
    alone = {query: documents for query, documents in known.items() if all(documents.values())}
    if not training and (data.kind != SCORES or len(alone) == len(known)):
        return _found(config, data, known)
    lists = {query: list(documents) for query, documents in known.items()}
    if not (training and alone):
        return lists
    found = _found(config, data, alone)
    place = {document: number for number, document in enumerate(data.documents.tolist())}
    for query, documents in alone.items():
        wrong = [one for one in found[query] if one not in documents]
        draw = np.random.default_rng([config.training.seed, query])
        drawn = draw.permutation(np.array(wrong, np.int64))[: config.num_negatives].tolist()
        # With too few that are found it would be told what is right, and hardly what is wrong.
        own = {place[one] for one in (query, *documents, *drawn) if one in place}
        more = others_of(own, len(place), config.num_negatives - len(drawn), draw)
        lists[query] = [*documents, *drawn, *data.documents[more].tolist()]
    return lists


def _found(
    config: RunRerankerConfig, data: VectorData, known: Mapping[int, Mapping[int, bool]]
) -> _Lists:
    """What BM25, or a model of vectors, finds among all documents of a file."""
    asked, documents = data.words([*known]), data.words(data.documents)
    count = config.num_candidates
    if config.candidates == _BM25:
        found = bm25_rankings(asked, documents, count + 1)
    else:
        from keras_bert_impl.serving.embedder import Embedder

        embedder = Embedder.from_pretrained(config.candidates, engine=config.engine)
        vectors = _embedded(embedder, documents, DOCUMENT), _embedded(embedder, asked, QUERY)
        found = nearest(*vectors, count + 1, score=embedder.settings.similarity)[0].tolist()
    lists = _Lists()
    for query, numbers in zip(known, found, strict=True):
        # Both find a query's own text first, which is left out unless it is a right document.
        right, own = known[query], data.texts[query][1]
        candidates = data.documents[numbers].tolist()
        others = [one for one in candidates if right.get(one) or data.texts[one][1] != own]
        lists[query] = others[:count]
    return lists


def _embedded(embedder: "Embedder", texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
    progress = Progress(f"embed each {prompt}", len(texts), "texts")
    return np.concatenate([*progress.over(embedder.embed_blocks(texts, prompt), len)])
