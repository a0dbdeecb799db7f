"""Scores that others reached with the published models, to compare a result with.

A model is taken for a published one if three things agree: its name on the hub or the name of its
folder, its sizes, and its vocabulary. A name alone says too little (a folder may be called
anything), and sizes and vocabulary are also those of many models that were trained further.

The sources:

- bert-base-cased: Hugging Face, examples/pytorch/text-classification (`run_glue`): batch 32,
  learning rate 2e-5, 3 epochs (MRPC and WNLI 5), one seed, dev set.
- bert-base-uncased: BERT's paper, table 5, the row of the whole model: dev set.

The range around a published figure is an allowance for other seeds: one point for the tasks with
over fifty thousand training examples, three for the smaller ones, whose seeds differ by more.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from keras_bert_impl.config import BertConfig

_SOURCES = {
    "bert-base-cased": "Hugging Face's run_glue, one seed",
    "bert-base-uncased": "BERT's paper, table 5",
}
_FOLDERS = {
    "bert-base-cased": "bert-base-cased",
    "cased_l-12_h-768_a-12": "bert-base-cased",
    "bert-base-uncased": "bert-base-uncased",
    "uncased_l-12_h-768_a-12": "bert-base-uncased",
}
_VOCABULARIES = {
    "bert-base-cased": "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02",
    "bert-base-uncased": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
_LARGE = {"SST-2", "QQP", "MNLI", "QNLI"}

# Task to metric to what was reached, in points.
_SCORES: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "bert-base-cased": {
        "CoLA": {"matthews_correlation": 56.5},
        "SST-2": {"accuracy": 92.3},
        "MRPC": {"f1": 88.9, "accuracy": 84.1},
        "STS-B": {"pearson": 88.6, "spearman": 88.5},
        "QQP": {"accuracy": 90.7, "f1": 87.5},
        "MNLI": {"accuracy": 83.9, "mismatched_accuracy": 84.1},
        "QNLI": {"accuracy": 90.7},
        "RTE": {"accuracy": 65.7},
        "WNLI": {"accuracy": 56.3},
    },
    "bert-base-uncased": {
        "MNLI": {"accuracy": 84.4},
        "QNLI": {"accuracy": 88.4},
        "MRPC": {"accuracy": 86.7},
        "SST-2": {"accuracy": 92.7},
    },
}


@dataclass(frozen=True)
class ExpectedScore:
    """A published score, and how far from it a figure may be.

    Attributes:
        model: the published model's name.
        published: what was reached.
        allowance: how far other seeds may be from it.
        source: who reached it.
    """

    model: str
    published: float
    allowance: float
    source: str

    def __str__(self) -> str:
        low, high = self.published - self.allowance, self.published + self.allowance
        return (
            f"expected for {self.model}: {low:.3f} to {high:.3f}; {self.published:.3f} in "
            f"{self.source}"
        )


def published_model(given: str | None, config: BertConfig, vocabulary_sha256: str) -> str | None:
    """The name of the published model that a run starts from; None for any other.

    Args:
        given: what the user named as the start: a folder, a prefix or a name on the hub.
        config: the model's configuration.
        vocabulary_sha256: of its vocabulary.

    Example:
        >>> published_model("my/bert", BertConfig(vocab_size=9), "") is None
        True
    """
    sizes = (config.hidden_size, config.num_hidden_layers, config.num_attention_heads)
    if given is None or sizes != (768, 12, 12):
        return None
    parts = re.split(r"[/\\]|--", given.lower())
    names = {_FOLDERS[part] for part in parts if part in _FOLDERS}
    matching = [name for name in names if _VOCABULARIES[name] == vocabulary_sha256]
    return matching[0] if matching else None


def expected_scores(task: str, model: str | None) -> dict[str, ExpectedScore]:
    """Published scores for the figures of `eval_results.txt`, by their names; may be empty.

    Args:
        task: the task's name.
        model: from `published_model`.

    Example:
        >>> print(expected_scores("RTE", "bert-base-cased")["eval_accuracy"])
        expected for bert-base-cased: 0.627 to 0.687; 0.657 in Hugging Face's run_glue, one seed
    """
    if model is None:
        return {}
    allowance = 0.01 if task in _LARGE else 0.03
    scores = _SCORES[model].get(task, {})
    return {
        f"eval_{metric}": ExpectedScore(model, points / 100, allowance, _SOURCES[model])
        for metric, points in scores.items()
    }
