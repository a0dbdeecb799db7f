"""Losses of texts' vectors: in-batch negatives, scored pairs, triplets, labelled pairs and texts.

An object of each class is called `loss(columns, labels=None)`. A column holds one vector of each
row of a batch, [n, size]: of queries, of documents. The loss is a scalar, computed in the columns'
type, float32 at least, on any of Keras' backends. Classes, settings and values are those of
sentence-transformers 6.2, with a word where it takes a function:

- `scale`: what similarities are multiplied by, one over the temperature;
- `similarity`: "cosine", or "dot", the plain product;
- `distance_metric`: "cosine" (1 − cosine), "euclidean" or "manhattan".

Example:
    >>> loss = loss_named("mnrl", scale=2.0)
    >>> round(float(loss([ops.eye(3), ops.eye(3)])), 3)
    0.24
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self, dataclass_transform

import keras
from keras import ops

from keras_bert_impl.errors import UserError, nearest

_NEVER = -1e30  # the score of what a log-sum-exp leaves out: infinity would make its gradient NaN
_BOTH = ("query_to_doc", "doc_to_query")
_WORDS = {
    "similarity": ("cosine", "dot"),
    "distance_metric": ("cosine", "euclidean", "manhattan"),
    "directions": (*_BOTH, "query_to_query", "doc_to_doc"),
    "partition_mode": ("joint", "per_direction"),
}


def unit_vectors(vectors: Any) -> Any:
    """Scales vectors to length 1: [..., size]; one shorter than 1e-12 has no direction and stays.

    Example:
        >>> [round(float(x), 3) for x in unit_vectors(ops.convert_to_tensor([3.0, 4.0]))]
        [0.6, 0.8]
    """
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors / _root(squares, at_zero=1.0)


def _at_least_float32(tensor: Any) -> Any:
    # Not by `keras.backend.result_type`, which knows no float64 on JAX.
    is_float64 = keras.backend.standardize_dtype(tensor.dtype) == "float64"
    return tensor if is_float64 else ops.cast(tensor, "float32")


def _root(squares: Any, at_zero: float = 0.0) -> Any:
    """The square root, with a gradient of 0 at 0, where it would be infinite."""
    above = ops.greater(squares, 1e-24)
    return ops.where(above, ops.sqrt(ops.where(above, squares, 1.0)), at_zero)


def _dot(first: Any, second: Any) -> Any:
    """The product of each row with the same row of the other: [n, size] twice -> [n]."""
    return ops.sum(first * second, axis=-1)


def _measured(columns: Sequence[Any], similarity: str) -> list[Any]:
    """Vectors whose products are the similarities."""
    return [unit_vectors(one) if similarity == "cosine" else one for one in columns]


def _distances(first: Any, second: Any, metric: str, offset: float = 0.0) -> Any:
    """Distances of vectors: [..., size] twice -> [...]."""
    if metric == "cosine":
        return 1.0 - _dot(unit_vectors(first), unit_vectors(second))
    difference = first - second + offset
    if metric == "manhattan":
        return ops.sum(ops.abs(difference), axis=-1)
    return _root(ops.sum(ops.square(difference), axis=-1))


def _all_distances(rows: Any, metric: str) -> Any:
    """Distances of all pairs: [n, size] -> [n, n], of which only manhattan holds [n, n, size]."""
    if metric == "manhattan":
        return _distances(rows[:, None], rows[None, :], metric)
    if metric == "cosine":
        units = unit_vectors(rows)
        return 1.0 - ops.matmul(units, ops.transpose(units))
    # Around their mean, from which no distance depends, less is lost where squares cancel out.
    rows = rows - ops.stop_gradient(ops.mean(rows, axis=0))
    squares = _dot(rows, rows)
    products = ops.matmul(rows, ops.transpose(rows))
    return _root(ops.relu(squares[:, None] + squares[None, :] - 2.0 * products))


def _same_row(rows: Any) -> Any:
    """Of which pairs the two are one row: boolean [n, n]."""
    numbers = ops.arange(ops.shape(rows)[0])
    return ops.equal(numbers[:, None], numbers[None, :])


@dataclass_transform(frozen_default=True)
class VectorLoss(ABC):
    """A loss of columns of vectors; each subclass is made a frozen dataclass of its settings."""

    columns: tuple[int, int | None] = (2, 2)  # the fewest and the most; None is any number
    needs_labels: bool = True  # without, the columns say it all
    label_axes: int = 1  # the most that labels have: [n], or also [n, some]
    in_batch: bool = False  # other rows' texts are negatives: a batch must not hold a text twice

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)
        keras.saving.register_keras_serializable(package="keras_bert_impl")(cls)

    def __post_init__(self) -> None:
        for name in _WORDS.keys() & vars(self).keys():
            given, words = getattr(self, name), _WORDS[name]
            for word in [given] if isinstance(given, str) else given:
                if word not in words:
                    raise UserError(f"{name} has {word!r}, which is none of {', '.join(words)}.")
        if (scale := vars(self).get("scale", 1.0)) <= 0:
            raise UserError(f"scale={scale} turns the order around; give more than 0.")

    def __call__(self, columns: Sequence[Any], labels: Any = None) -> Any:
        """Gives the loss of columns [n, size] and labels [n], which some losses leave aside.

        Raises:
            UserError: columns or labels are missing, or their shapes differ.
        """
        tensors = [ops.convert_to_tensor(column) for column in columns]
        labels = labels if self.needs_labels else None
        if labels is not None:
            labels = ops.convert_to_tensor(labels)
            labels = labels[:, 0] if tuple(labels.shape[1:]) == (1,) else labels
            is_bool = keras.backend.standardize_dtype(labels.dtype) == "bool"
            labels = ops.cast(labels, "int32") if is_bool else labels
        self._check(tensors, labels)
        return self._loss([_at_least_float32(one) for one in tensors], labels)

    def _check(self, columns: list[Any], labels: Any) -> None:
        name, (fewest, most) = type(self).__name__, self.columns
        if not fewest <= len(columns) <= (most or len(columns)):
            count = fewest if most == fewest else f"{fewest} or more"
            raise UserError(f"{name} takes {count} columns of vectors, but {len(columns)} came.")
        if self.needs_labels and labels is None:
            raise UserError(f"{name} needs labels, one of each row; give loss(columns, labels).")
        shapes = [tuple(one.shape) for one in columns]
        rows = {tuple(one.shape[:1]) for one in (*columns, labels) if one is not None}
        alike = len(rows - {(None,)}) <= 1 and len({one[1:] for one in shapes}) == 1
        of_labels = 1 if labels is None else len(labels.shape)
        if not alike or len(shapes[0]) != 2 or of_labels > self.label_axes:
            also = "" if labels is None else f" and labels {tuple(labels.shape)}"
            shown = ", ".join(map(str, shapes))
            raise UserError(f"{name}: columns are [n, size], labels n, but {shown}{also} came.")

    @abstractmethod
    def _loss(self, columns: list[Any], labels: Any) -> Any:
        """The loss of tensors [n, size] that were checked, and of their labels."""

    def get_config(self) -> dict[str, Any]:
        """The settings, so that a compiled model is saved with its loss."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return keras.saving.serialize_keras_object(settings)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the loss from what `get_config` gave."""
        return cls(**keras.saving.deserialize_keras_object(config))


class MultipleNegativesRankingLoss(VectorLoss):
    """In-batch negatives (InfoNCE): each query's document against those of all other rows.

    The mean over rows of log Σ exp(s of each candidate) − s(query, its document), with s = scale ·
    similarity. Candidates are of "query_to_doc" all documents, hard negatives too, compared with
    the row's query; of "query_to_query" the other queries; of "doc_to_query" all queries, compared
    with the row's document; of "doc_to_doc" the documents of the other rows. Henderson et al. 2017,
    https://arxiv.org/abs/1705.00652; several directions: https://arxiv.org/abs/2308.03281.

    Columns: queries, their documents, and any number of hard negatives. No labels.

    Args:
        directions: which candidates there are; "query_to_doc" is among them.
        partition_mode: "joint" takes one log-sum-exp over the candidates of all directions,
            "per_direction" one of each and their mean, of the directions between the two kinds.

    Example:
        >>> loss = MultipleNegativesRankingLoss(similarity="dot")
        >>> round(float(loss([ops.eye(4), ops.zeros([4, 4])])), 3)  # log 4: one document is as good
        1.386
    """

    scale: float = 20.0
    similarity: str = "cosine"
    directions: Sequence[str] = ("query_to_doc",)
    partition_mode: str = "joint"

    columns = (2, None)
    needs_labels = False
    in_batch = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if "query_to_doc" not in self.directions or isinstance(self.directions, str):
            raise UserError(f"directions={self.directions!r} is no list with 'query_to_doc'.")
        if self.partition_mode == "per_direction" and not set(self.directions) <= set(_BOTH):
            raise UserError(
                "partition_mode='per_direction' is for query_to_doc and doc_to_query; other "
                "directions lack the right candidate and need partition_mode='joint'."
            )

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        del labels
        queries, *documents = _measured(columns, self.similarity)
        compared = {
            "query_to_doc": (queries, documents),
            "query_to_query": (queries, [queries]),
            "doc_to_query": (documents[0], [queries]),
            "doc_to_doc": (documents[0], documents),
        }
        right = _dot(queries, documents[0]) * self.scale  # [n]
        sums = []
        for direction in dict.fromkeys(self.directions):
            one, others = compared[direction]
            scores = ops.matmul(one, ops.transpose(ops.concatenate(others))) * self.scale
            if direction not in _BOTH:  # of one kind: what is of the row itself is no candidate
                scores = ops.where(ops.tile(_same_row(one), [1, len(others)]), _NEVER, scores)
            sums.append(ops.logsumexp(scores, axis=1))
        log_sums = ops.stack(sums)  # [directions, n]
        joined = ops.logsumexp if self.partition_mode == "joint" else ops.mean
        return ops.mean(joined(log_sums, axis=0) - right)


class CoSENTLoss(VectorLoss):
    """Scored pairs by their order: a pair of a higher score shall have the higher similarity.

    log(1 + Σ exp(scale · (s_i − s_j))) over all i, j with label_i < label_j: a sum over the batch,
    not a mean. Su 2022, https://kexue.fm/archives/8847.

    Columns: the two texts. Labels: scores in any unit.

    Example:
        >>> columns = [ops.eye(2), [[0.0, 1.0], [0.0, 1.0]]]  # cosines 0 and 1
        >>> [round(float(CoSENTLoss()(columns, scores)), 3) for scores in ([1, 5], [5, 1])]
        [0.0, 20.0]
    """

    scale: float = 20.0
    similarity: str = "cosine"

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        return _in_order(_dot(*_measured(columns, self.similarity)) * self.scale, labels)


def _in_order(scores: Any, labels: Any) -> Any:
    """log(1 + Σ exp(s_i − s_j)) where label_i < label_j, of scores and labels [n]."""
    lower = labels[:, None] < labels[None, :]
    differences = ops.where(lower, scores[:, None] - scores[None, :], _NEVER)
    return ops.softplus(ops.logsumexp(differences))


class AnglELoss(VectorLoss):
    """CoSENT by angles, whose gradient does not vanish where cosines are near 1.

    A vector's halves are the real and the imaginary parts of complex numbers (an odd size gets a
    0). The similarity of unit vectors (a, b) and (c, d) is the absolute value of Σ (ac + bd) + Σ
    (bc − ad). Li and Li 2023, https://arxiv.org/abs/2309.12871.

    Columns: the two texts. Labels: scores in any unit.

    Example:
        >>> columns = [ops.eye(2), [[0.6, 0.8], [1.0, 0.0]]]  # 0.2 and 1
        >>> round(float(AnglELoss(scale=1.0)(columns, [1, 0])), 3)
        1.171
    """

    scale: float = 20.0

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        even = [ops.pad(one, [[0, 0], [0, one.shape[1] % 2]]) for one in columns]
        (a, b), (c, d) = (ops.split(unit_vectors(one), 2, axis=1) for one in even)
        similarities = ops.abs(_dot(a, c) + _dot(b, d) + _dot(b, c) - _dot(a, d))
        return _in_order(similarities * self.scale, labels)


class CosineSimilarityLoss(VectorLoss):
    """The mean of (cosine − label)²; Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084.

    Columns: the two texts. Labels: cosines from -1 to 1.

    Example:
        >>> float(CosineSimilarityLoss()([ops.eye(2), ops.eye(2)], [1.0, 0.0]))
        0.5
    """

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        cosines = _dot(*map(unit_vectors, columns))
        return ops.mean(ops.square(cosines - ops.cast(labels, cosines.dtype)))


class TripletLoss(VectorLoss):
    """The mean of max(0, distance(anchor, positive) − distance(anchor, negative) + margin).

    Schroff et al. 2015, https://arxiv.org/abs/1503.03832. Cosine distances want a far smaller
    margin than the default's.

    Columns: anchors, positives, negatives. No labels.

    Example:
        >>> float(TripletLoss()([[[0.0], [0.0]], [[0.0], [0.0]], [[3.0], [9.0]]]))  # (2 + 0) / 2
        1.0
    """

    distance_metric: str = "euclidean"
    triplet_margin: float = 5.0

    columns = (3, 3)
    needs_labels = False

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        del labels
        near, far = (_distances(columns[0], one, self.distance_metric) for one in columns[1:])
        return ops.mean(ops.relu(near - far + self.triplet_margin))


class OnlineContrastiveLoss(VectorLoss):
    """Pairs that belong together (1) or not (0), of which only the hard ones count.

    Σ d² over the positive pairs farther apart than the nearest negative pair, plus Σ max(0,
    margin − d)² over the negative pairs nearer than the farthest positive pair; where there is no
    pair of the other kind, the mean distance of the own kind stands in for that bound.

    Columns: the two texts. Labels: 0 or 1; pairs of others do not count.

    Example:
        >>> columns = [[[1.0, 0.0]] * 4, [[1.0, 0.0], [0.0, 1.0]] * 2]  # distances 0, 1, 0, 1
        >>> float(OnlineContrastiveLoss()(columns, [1, 1, 0, 0]))  # 1² + 0.5²
        1.25
    """

    distance_metric: str = "cosine"
    margin: float = 0.5

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        distances, positive, negative = self._costs(columns, labels)
        is_positive, is_negative = ops.equal(labels, 1), ops.equal(labels, 0)
        farthest = ops.max(ops.where(is_positive, distances, _NEVER))
        nearest_one = ops.min(ops.where(is_negative, distances, -_NEVER))
        far = distances > _bound(nearest_one, is_negative, is_positive, distances)
        near = distances < _bound(farthest, is_positive, is_negative, distances)
        hard_positive = ops.where(ops.logical_and(is_positive, far), positive, 0.0)
        hard_negative = ops.where(ops.logical_and(is_negative, near), negative, 0.0)
        return ops.sum(hard_positive + hard_negative)

    def _costs(self, columns: list[Any], labels: Any) -> tuple[Any, Any, Any]:
        """Each pair's distance [n], and what it costs as a positive and as a negative one."""
        first, second = columns
        distances = _distances(first, second, self.distance_metric, offset=1e-6)  # as PyTorch's
        apart = ops.square(ops.relu(self.margin - distances))
        together = ops.cast(labels, distances.dtype)
        return distances, together * ops.square(distances), (1.0 - together) * apart


def _bound(extreme: Any, others: Any, own: Any, distances: Any) -> Any:
    """The extreme of the other kind, where it has a pair, or the own kind's mean."""
    weights = ops.cast(own, distances.dtype)
    mean = ops.sum(distances * weights) / ops.maximum(ops.sum(weights), 1.0)
    return ops.where(ops.any(others), extreme, mean)


class ContrastiveLoss(OnlineContrastiveLoss):
    """Pairs that belong together (1) or not (0).

    Half the mean of label · d² + (1 − label) · max(0, margin − d)², with d the distance. Hadsell et
    al. 2006, http://yann.lecun.com/exdb/publis/pdf/hadsell-chopra-lecun-06.pdf.

    Columns: the two texts. Labels: 0 or 1.

    Args:
        size_average: False adds up in place of the mean.

    Example:
        >>> float(ContrastiveLoss()([ops.eye(2), ops.eye(2)], [1, 0]))  # (0² + 0.5²) / 2 / 2
        0.0625
    """

    size_average: bool = True

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        _, positive, negative = self._costs(columns, labels)
        return (ops.mean if self.size_average else ops.sum)(positive + negative) * 0.5


class BatchHardSoftMarginTripletLoss(VectorLoss):
    """Texts of classes: each against its farthest like and its nearest unlike in the batch.

    The mean of log(1 + exp(farthest − nearest)); in a batch of one class the farthest of all stands
    in for the nearest unlike. Hermans et al. 2017, https://arxiv.org/abs/1703.07737.

    Columns: the texts. Labels: classes.

    Example:
        >>> texts = [[0.0], [1.0], [3.0], [3.0]]
        >>> round(float(BatchHardSoftMarginTripletLoss()([texts], [0, 0, 1, 1])), 3)
        0.174
    """

    distance_metric: str = "euclidean"

    columns = (1, 1)

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        (rows,) = columns
        distances = _all_distances(rows, self.distance_metric)
        same = ops.equal(labels[:, None], labels[None, :])
        like = ops.logical_and(same, ops.logical_not(_same_row(rows)))
        farthest = ops.max(ops.where(like, distances, 0.0), axis=1)
        most = ops.max(distances, axis=1, keepdims=True)
        nearest_unlike = ops.min(distances + ops.where(same, most, 0.0), axis=1)
        return ops.mean(ops.softplus(farthest - nearest_unlike))


class MarginMSELoss(VectorLoss):
    """A teacher's margins: the mean of (s(q, p) − s(q, n) − the teacher's)² over all negatives.

    Hofstätter et al. 2020, https://arxiv.org/abs/2010.02666.

    Columns: queries, positives, and k ≥ 1 negatives. Labels: the teacher's margins [n] or [n, k],
    or its scores [n, 1 + k], the positive's first.

    Example:
        >>> columns = [ops.eye(2), ops.eye(2), ops.zeros([2, 2])]  # margins of 1
        >>> float(MarginMSELoss()(columns, [1.0, 3.0]))
        2.0
    """

    similarity: str = "dot"

    columns = (3, None)
    label_axes = 2

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        queries, positives, *negatives = _measured(columns, self.similarity)
        right = _dot(queries, positives)
        margins = ops.stack([right - _dot(queries, one) for one in negatives], axis=1)  # [n, k]
        wanted = ops.cast(labels, margins.dtype)
        wanted = wanted if len(wanted.shape) == 2 else wanted[:, None]
        if wanted.shape[1] == 1 + len(negatives):
            wanted = wanted[:, :1] - wanted[:, 1:]
        if wanted.shape[1] != len(negatives):
            few, many = len(negatives), 1 + len(negatives)
            raise UserError(f"MarginMSELoss takes {few} margins or {many} scores of each row here.")
        return ops.mean(ops.square(margins - wanted))


class MatryoshkaLoss(VectorLoss):
    """Another loss of the vectors' first numbers, at several sizes: for vectors that can be cut.

    Σ weight · loss, each vector cut to the size and then scaled to length 1. Kusupati et al. 2022,
    https://arxiv.org/abs/2205.13147.

    Columns, labels: as `loss` takes them.

    Args:
        dims: the sizes; the whole one is one of them, if it shall be trained.
        weights: one of each size; 1 by default.

    Example:
        >>> loss = MatryoshkaLoss(CosineSimilarityLoss(), dims=[4, 2], weights=[1.0, 0.5])
        >>> float(loss([ops.eye(4), ops.eye(4)], [0.0, 0.0, 1.0, 1.0]))  # 0.5 + 0.5 * 1.0
        1.0
    """

    loss: VectorLoss
    dims: Sequence[int]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.dims or len(self.weights or self.dims) != len(self.dims):
            raise UserError(f"dims={self.dims} and weights={self.weights} are not as many.")
        for name in ("columns", "needs_labels", "label_axes", "in_batch"):
            object.__setattr__(self, name, getattr(self.loss, name))

    def _loss(self, columns: list[Any], labels: Any) -> Any:
        size = columns[0].shape[1]
        if not 0 < min(self.dims) <= max(self.dims) <= size:
            raise UserError(f"dims={self.dims}: the vectors have {size} numbers; give 1 to {size}.")
        return sum(
            weight * self.loss([unit_vectors(one[:, :dim]) for one in columns], labels)
            for dim, weight in zip(self.dims, self.weights or [1.0] * len(self.dims), strict=True)
        )


LOSSES: dict[str, Callable[..., VectorLoss]] = {
    "mnrl": MultipleNegativesRankingLoss,
    "mnrl_symmetric": partial(
        MultipleNegativesRankingLoss, directions=_BOTH, partition_mode="per_direction"
    ),
    "mnrl_all": partial(
        MultipleNegativesRankingLoss, directions=(*_BOTH, "query_to_query", "doc_to_doc")
    ),
    "cosent": CoSENTLoss,
    "angle": AnglELoss,
    "cosine": CosineSimilarityLoss,
    "triplet": TripletLoss,
    "contrastive": ContrastiveLoss,
    "online_contrastive": OnlineContrastiveLoss,
    "batch_hard": BatchHardSoftMarginTripletLoss,
    "margin_mse": MarginMSELoss,
}
"""The losses by their names in flags."""


def loss_named(name: str, **options: Any) -> VectorLoss:
    """Makes a loss of `LOSSES`.

    Example:
        >>> loss_named("cosent", scale=10.0)
        CoSENTLoss(scale=10.0, similarity='cosine')
    """
    if name not in LOSSES:
        near = nearest(name, list(LOSSES))
        hint = f"did you mean {near}?" if near else f"choose {', '.join(LOSSES)}."
        raise UserError(f"`loss={name}` is unknown; {hint}")
    return LOSSES[name](**options)
