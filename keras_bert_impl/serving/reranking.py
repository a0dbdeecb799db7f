"""The score of a document for a query: which number of a model of pairs it is, and who is asked.

| the model gives | the score |
|---|---|
| a number | the number, behind the activation that sentence-transformers puts behind it |
| labels | the probability of one of them: of two the second one, else the one that is named |
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.serving.answerer import Answer, Answerer, AnsweringModel, Instance

_TORCH_NAME = re.compile(r"torch\.nn\.(?:modules\.\w+\.)?(\w+)")
_ACTIVATIONS: Mapping[str, Callable[[float], float]] = {
    # In the form that no large number overflows, and that keeps a small one.
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)),
    "Identity": float,
    "Tanh": math.tanh,
}
_SCORED = ("number", "label", "labels")


def activation_of(config: BertConfig) -> str:
    """What is put behind the one logit of a model, by the name that its files have for it.

    As sentence-transformers does: what a file names, else a sigmoid. A number that was learned here
    before the file named anything is the score as it is.

    Example:
        >>> old = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
        >>> activation_of(BertConfig(vocab_size=9, extra=old))
        'Identity'
        >>> activation_of(BertConfig(vocab_size=9))
        'Sigmoid'
    """
    extra = config.extra
    entry = extra.get("sentence_transformers") or {}
    name = entry.get("activation_fn", extra.get("sbert_ce_default_activation_function"))
    if name is None:
        is_number = extra.get("problem_type") == "regression" and "task" in task_settings(config)
        return "Identity" if is_number else "Sigmoid"
    found = _TORCH_NAME.fullmatch(name)
    return found[1] if found else str(name)


class PairScoring(NamedTuple):
    """How a model is asked for scores.

    `raw` makes the number that no activation and no softmax has changed.
    """

    answerer: Answerer
    score: Callable[[Answer], float]
    raw: Callable[[Answer], float]

    def instances(self, query: str, documents: Sequence[str]) -> list[Instance]:
        first, second = (one.name for one in self.answerer.inputs)
        return [{first: query, second: document} for document in documents]


def pairs_of(model: AnsweringModel) -> Answerer | None:
    """Who answers pairs of texts with labels or a number; None where nobody does."""
    answerers = model.answerers.values()
    return next((x for x in answerers if x.kind in _SCORED and len(x.inputs) == 2), None)


def fault_of_activation(model: AnsweringModel) -> str | None:
    """Why nobody knows the scores of a model that gives a number; None where they are known."""
    name = model.description.get("activation", "Identity")
    if name in _ACTIVATIONS:
        return None
    known = f"known are torch.nn's {', '.join(_ACTIVATIONS)}"
    return f"the model's activation_fn is {shown(name)}, which is not known here; {known}."


def can_rank(model: AnsweringModel) -> bool:
    """Whether a model scores pairs of texts."""
    return pairs_of(model) is not None and fault_of_activation(model) is None


def pair_scoring(model: AnsweringModel, positive_label: str | None = None) -> PairScoring:
    """How a model scores pairs."""
    answerer = pairs_of(model)
    if answerer is None:
        raise UserError("the model scores no pairs of texts; name one that was trained on pairs.")
    if answerer.kind == "number":
        if positive_label is not None:
            raise UserError("`positive_label` names a label, but the model gives a number.")
        if fault := fault_of_activation(model):
            raise UserError(fault)
        activation = _ACTIVATIONS[model.description.get("activation", "Identity")]
        return PairScoring(answerer, lambda x: activation(x["score"]), lambda x: float(x["score"]))
    labels = list(model.description["labels"])
    known = f"the model has the labels {', '.join(labels[:12])}"
    if positive_label is None and (answerer.kind != "label" or len(labels) != 2):
        raise UserError(f"{known}; say by `positive_label` whose probability is the score.")
    if positive_label not in (None, *labels):
        raise UserError(f"`positive_label={positive_label}`: {known}; name one of them.")
    place = 1 if positive_label is None else labels.index(positive_label)
    return PairScoring(
        answerer, lambda x: float(x["probabilities"][place]), lambda x: float(x["logits"][place])
    )


def best_of(scoring: PairScoring, answers: Sequence[Answer], top: int | None = None) -> list[int]:
    """The numbers of documents, the best first; those of one score stay in their order.

    Where an activation makes scores equal, such as 1, the raw ones decide.
    """
    keys = [(scoring.score(answer), scoring.raw(answer)) for answer in answers]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)[:top]
