"""Documents for queries: a cross-encoder learns which ones are right, and is judged by their order.

| columns of a file | what a row is |
|---|---|
| query, document (or what the options name) | a query and a right document |
| beside them negative, negative_2, … (in JSON also a list) | and wrong ones |
| beside them a label | a query and one of its documents, which is right where it is more than 0 |

A dev file with labels of 0 lists the candidates of each query in their order. Of others they are
what BM25, or a model of vectors, finds among all documents of the file.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import FREE, nested, option
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.training.learning_curve import CurveStyle
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.heads import MultiLabelHead, as_label_list
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.task import Answered
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics.guessing import Guessing
from pipelines.metrics.retrieval import best_documents, bm25_rankings, need_bm25, ranking_figures
from pipelines.tables.columns import Columns, choose_columns, value_of
from pipelines.tables.files import Record, TableFile, open_table
from pipelines.tables.writing import digits, write_table
from pipelines.tasks.labels.rows import LabelAnswer, LabelTask

if TYPE_CHECKING:
    from pipelines.fine_tuning.run import FineTuningResults

_LABEL, _BM25 = "relevant", "bm25"
_RIGHT, _WRONG = as_label_list([_LABEL]), as_label_list([])
_NEGATIVE = re.compile(r"negatives?(_\d+)?")
_FIGURES = ("ndcg@10", "mrr@10")
Ranked = Answered[TextExample, LabelAnswer]


@dataclass(frozen=True, kw_only=True)
class RunRerankerConfig(FineTuningConfig):
    """The options of a run for a cross-encoder."""

    OF_FILES: ClassVar = ("text_column", "text_pair_column", "label_column", "encoding")

    train_file: str | None = option(
        None,
        "Queries with their documents to train on: CSV, TSV or JSON, plain or packed, with the "
        "columns query and document, and perhaps negative, negative_2, ..., or label.",
        resume=FREE,  # the content is compared
    )
    dev_file: str | None = option(
        None, "Queries with their documents to evaluate, in the same forms.", resume=FREE
    )
    text_column: str | None = option(
        None, "The column of the query; by default guessed where it is plain."
    )
    text_pair_column: str | None = option(None, "The column of the document.")
    label_column: str | None = option(
        None, "The column that is more than 0 where the document is right for the query."
    )
    candidates: str = option(
        _BM25,
        "What finds the documents that are put in order, and the wrong ones to train on where the "
        "file has none: bm25, or a model of vectors.",
    )
    num_candidates: int = option(30, "How many documents are found for a query.", at_least=1)
    num_negatives: int = option(
        4, "How many of them, drawn by the seed, a query is trained with.", at_least=1
    )
    text_encoding: TextEncoding = nested(TextEncoding)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.do_train and not self.train_file:
            raise UserError("training needs `train_file`; name a file of queries and documents.")
        if (self.do_eval or self.do_predict) and not self.dev_file:
            raise UserError("there is nothing to evaluate; name a file with `dev_file`.")

    @property
    def file_encoding(self) -> TextEncoding:
        """See `FineTuningConfig.file_encoding`."""
        return self.text_encoding

    def kept_in_model(self, task: Any) -> Mapping[str, Any]:
        """That an example has two texts."""
        del task
        return {"num_texts": 2}


@dataclass(frozen=True)
class RankingTask(LabelTask):
    """Pairs of a query and a document, which is right or not; see `Task`.

    Attributes:
        splits: the pairs; those of one query have one `identifier`, and stand in the candidates'
            order.
        relevant: how many right documents each query to evaluate has, found or not.
        tables: the file of each split.
    """

    splits: Mapping[str, Sequence[TextExample]]
    relevant: Mapping[str, int]
    tables: Mapping[str, TableFile]
    head_of: MultiLabelHead = field(default_factory=lambda: MultiLabelHead([_LABEL]))
    long_texts: LongTexts = field(default_factory=LongTexts)
    name: str = "reranking"
    train_split: str = "train"

    @property
    def evaluation_splits(self) -> Sequence[str]:
        """The dev file."""
        return [split for split in ("dev",) if split in self.splits]

    test_splits = evaluation_splits
    settings: ClassVar[Mapping[str, Any]] = {}
    compared_figures: ClassVar = _FIGURES
    curve_style: ClassVar = CurveStyle(_FIGURES)

    def files(self, split: str) -> list[Path]:
        """See `Task.files`."""
        return self.tables[split].paths()

    def examples(self, split: str) -> Sequence[TextExample]:
        """See `Task.examples`."""
        return self.splits[split]

    def score(self, answered: Ranked) -> dict[str, float]:
        """The figures of the order by score, and those of the candidates' own order."""
        given = defaultdict[str, list[tuple[float, bool]]](list)
        for example, answer in answered:
            given[example.identifier].append((answer.values[0], example.label == _RIGHT))
        ordered = {query: sorted(some, key=lambda one: -one[0]) for query, some in given.items()}
        own = self._figures(given)
        return self._figures(ordered) | {f"candidates_{name}": own[name] for name in own}

    def _figures(self, ranked: Mapping[str, Sequence[tuple[float, bool]]]) -> dict[str, float]:
        rankings = [[right for _, right in ranked.get(query, ())] for query in self.relevant]
        found = ranking_figures(rankings, list(self.relevant.values()))
        return {name: found[name] for name in _FIGURES}

    def guessing(self, split: str) -> Guessing:
        """The candidates as they stand."""
        same = LabelAnswer("", None, np.zeros(1))
        return Guessing("in the candidates' order", [(one, same) for one in self.examples(split)])

    def write(self, folder: Path, split: str, answered: Ranked) -> list[Path]:
        """Writes the documents of each query, the best first."""
        best = sorted(answered, key=lambda one: (int(one[0].identifier), -one[1].values[0]))
        rows = (
            [example.text_a, example.text_b, int(example.label == _RIGHT), digits(answer.values[0])]
            for example, answer in best
        )
        header = ["query", "document", "label", "score"]
        return [write_table(folder / f"{split}_ranking.tsv", header, rows)]


class _Table(NamedTuple):
    """What a file says: of each query its documents, and which are right.

    `listed` says that the documents are the candidates.
    """

    file: TableFile
    known: dict[str, dict[str, bool]]
    listed: bool

    @classmethod
    def read(cls, config: RunRerankerConfig, name: str) -> "_Table":
        """Reads a file."""
        file = open_table(name, encoding=config.text_encoding)
        label = [config.label_column] if config.label_column else []
        columns = choose_columns(
            file, config.text_column, config.text_pair_column, label, labelled=bool(label)
        )
        if columns.text_pair is None:
            raise UserError(
                f"{name}: has no column of documents that is plain; name it with "
                "`text_pair_column`, and the queries' with `text_column`."
            )
        known: dict[str, dict[str, bool]] = {}
        for record in file.records():
            query, document = columns.read_texts(file, record)
            documents = known.setdefault(query, {})
            right = not columns.labels or _is_right(file, record, columns.labels[0])
            documents[str(document)] = right or documents.get(str(document), False)
            for negative in _negatives(file, record, columns):
                documents.setdefault(negative, False)
        if not any(any(documents.values()) for documents in known.values()):
            raise UserError(f"{name}: no query has a right document; name another file.")
        has_wrong = any(not all(documents.values()) for documents in known.values())
        return cls(file, known, has_wrong and bool(columns.labels))

    def candidates(self, config: RunRerankerConfig) -> Iterator[tuple[str, list[str]]]:
        """The documents that are found for each query, the best first."""
        if self.listed:
            yield from ((query, list(documents)) for query, documents in self.known.items())
            return
        queries = list(self.known)
        documents = list(dict.fromkeys(one for some in self.known.values() for one in some))
        if config.candidates == _BM25:
            found = bm25_rankings(queries, documents, config.num_candidates)
        else:
            found = _nearest(config, queries, documents)
        for query, numbers in zip(queries, found, strict=True):
            yield query, [documents[number] for number in numbers]

    def training(self, config: RunRerankerConfig) -> Iterator[tuple[str, list[str]]]:
        """Each query with its documents, and with some that were found where none is wrong."""
        if all(not all(documents.values()) for documents in self.known.values()):
            yield from ((query, list(documents)) for query, documents in self.known.items())
            return
        for number, (query, found) in enumerate(self.candidates(config)):
            documents = self.known[query]
            wrong = [one for one in found if one not in documents]
            draw = np.random.default_rng([config.training.seed, number])
            count = min(config.num_negatives, len(wrong)) if all(documents.values()) else 0
            drawn = draw.choice(len(wrong), count, replace=False) if count else ()
            yield query, [*documents, *(wrong[place] for place in drawn)]

    def examples(self, pairs: Iterable[tuple[str, list[str]]]) -> list[TextExample]:
        """A pair for each document; queries are counted in their order."""
        return [
            TextExample(str(number), query, one, _RIGHT if self.known[query].get(one) else _WRONG)
            for number, (query, documents) in enumerate(pairs)
            for one in documents
        ]


def _nearest(
    config: RunRerankerConfig, queries: Sequence[str], documents: Sequence[str]
) -> list[list[int]]:
    """The numbers of the nearest documents of each query by a model of vectors."""
    from keras_bert_impl.serving.embedder import Embedder

    embedder = Embedder.from_pretrained(config.candidates)
    vectors = embedder.embed(queries), embedder.embed(documents)
    return best_documents(*vectors, config.num_candidates)[0].tolist()


def _is_right(file: TableFile, record: Record, column: str) -> bool:
    value = value_of(file, record, column)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise UserError(
            f"{file.name}: line {record.line}: the label {shown(value)} is no number; write 1 for "
            "a right document and 0 for another."
        )
    return number > 0


def _negatives(file: TableFile, record: Record, columns: Columns) -> Iterator[str]:
    for name in file.columns:
        if columns.labels or not _NEGATIVE.fullmatch(name.lower()):
            continue
        value = record.values.get(name)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | None):
                raise UserError(
                    f"{file.name}: line {record.line}: {shown(name)} holds {shown(one)}; write "
                    "texts."
                )
            if one:
                yield one


def task_of(config: RunRerankerConfig) -> RankingTask:
    """Reads the files, and finds the candidates."""
    if config.candidates == _BM25:
        need_bm25()
    splits: dict[str, list[TextExample]] = {}
    tables: dict[str, TableFile] = {}
    relevant: dict[str, int] = {}
    if config.do_train and config.train_file:
        table = _Table.read(config, config.train_file)
        tables["train"], splits["train"] = table.file, table.examples(table.training(config))
    if config.dev_file:
        table = _Table.read(config, config.dev_file)
        tables["dev"], splits["dev"] = table.file, table.examples(table.candidates(config))
        counts = enumerate(sum(documents.values()) for documents in table.known.values())
        relevant = {str(number): count for number, count in counts if count}
    return RankingTask(splits, relevant, tables)


def run_reranker(config: RunRerankerConfig) -> "FineTuningResults":
    """Fine-tunes a cross-encoder, and judges it; see `fine_tune`."""
    from pipelines.fine_tuning.run import fine_tune  # TensorFlow

    return fine_tune(config, task_of)
