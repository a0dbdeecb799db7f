"""The nine tasks of GLUE, read from the files of GLUE's own archive."""

from collections.abc import Mapping

from pipelines.metrics.classification import accuracy, f1_score, matthews_correlation
from pipelines.metrics.correlation import pearson_correlation, spearman_correlation
from pipelines.tasks.classification_head import ClassificationHead
from pipelines.tasks.glue_task import GlueTask, Layout, Metric
from pipelines.tasks.regression_head import RegressionHead

_ACCURACY: Mapping[str, Metric] = {"accuracy": accuracy}
_ACCURACY_AND_F1: Mapping[str, Metric] = {"accuracy": accuracy, "f1": f1_score}
_ENTAILMENT = ClassificationHead({"entailment": "entailment", "not_entailment": "not_entailment"})

COLA = GlueTask(
    "CoLA",
    Layout(
        "sentence",
        None,
        "label",
        labelled_columns=("source", "label", "original_mark", "sentence"),
    ),
    ClassificationHead({"0": "unacceptable", "1": "acceptable"}),
    {"matthews_correlation": matthews_correlation, "accuracy": accuracy},
)
SST_2 = GlueTask(
    "SST-2",
    Layout("sentence", None, "label"),
    ClassificationHead({"0": "negative", "1": "positive"}),
    _ACCURACY,
)
MRPC = GlueTask(
    "MRPC",
    Layout("#1 String", "#2 String", "Quality"),
    ClassificationHead({"0": "not_equivalent", "1": "equivalent"}),
    _ACCURACY_AND_F1,
)
STS_B = GlueTask(
    "STS-B",
    Layout("sentence1", "sentence2", "score"),
    RegressionHead(0.0, 5.0),
    {"pearson": pearson_correlation, "spearman": spearman_correlation},
)
QQP = GlueTask(
    "QQP",
    # A few questions in GLUE's training file hold a line break, which cuts their row in two.
    Layout("question1", "question2", "is_duplicate", index="id", skip_broken_rows=True),
    ClassificationHead({"0": "not_duplicate", "1": "duplicate"}),
    _ACCURACY_AND_F1,
)
MNLI = GlueTask(
    "MNLI",
    Layout("sentence1", "sentence2", "gold_label"),
    ClassificationHead(
        {"contradiction": "contradiction", "entailment": "entailment", "neutral": "neutral"}
    ),
    _ACCURACY,
    evaluation_splits=("dev_matched", "dev_mismatched"),
    test_splits=("test_matched", "test_mismatched"),
    submissions=("MNLI-m.tsv", "MNLI-mm.tsv"),
)
QNLI = GlueTask("QNLI", Layout("question", "sentence", "label"), _ENTAILMENT, _ACCURACY)
RTE = GlueTask("RTE", Layout("sentence1", "sentence2", "label"), _ENTAILMENT, _ACCURACY)
WNLI = GlueTask(
    "WNLI",
    Layout("sentence1", "sentence2", "label"),
    ClassificationHead({"0": "not_entailment", "1": "entailment"}),
    _ACCURACY,
)
GLUE_TASKS = (COLA, SST_2, MRPC, STS_B, QQP, MNLI, QNLI, RTE, WNLI)
