"""Makes `more_losses.npz`: what sentence-transformers says with other settings than its defaults.

Run in an environment of its own: `pip install sentence-transformers==6.2.0`. The vectors are those
of `vector_losses.npz`. `NAME/loss` is a loss' value, `NAME/grad0`, ... the columns' gradients.
"""

from pathlib import Path

import numpy as np
import torch
from sentence_transformers import losses, util
from sentence_transformers.sentence_transformer.losses.batch_hard_triplet import (
    BatchHardTripletLossDistanceFunction,
)
from sentence_transformers.sentence_transformer.losses.contrastive import SiameseDistanceMetric
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric

HERE = Path(__file__).parent
VECTORS = np.load(HERE / "vector_losses.npz")
A, P, N, M = (VECTORS[name] for name in ("anchors", "positives", "negatives", "negatives2"))
SEVERAL = np.array([1, 0, 1, 0, 1, 0, 0])
SCORES = np.linspace(-1, 2, 21).reshape(7, 3)
EVERY = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
ranking, contrastive = losses.MultipleNegativesRankingLoss, losses.ContrastiveLoss


class Cut(torch.nn.Module):
    """What `MatryoshkaLoss` does to the vectors that a model gives."""

    def __init__(self, loss, sizes, weights):
        super().__init__()
        self.loss, self.sizes, self.weights = loss, sizes, weights

    def compute_loss_from_embeddings(self, columns, labels):
        return sum(
            weight
            * self.loss.compute_loss_from_embeddings(
                [torch.nn.functional.normalize(one[:, :size], dim=-1) for one in columns], labels
            )
            for size, weight in zip(self.sizes, self.weights, strict=True)
        )


CASES = {
    "mnrl_per_direction": (
        ranking(None, scale=5.0, directions=EVERY[::2], partition_mode="per_direction"),
        [A, P, N, M],
        None,
    ),
    "mnrl_every_direction": (ranking(None, scale=5.0, directions=EVERY), [A, P, N, M], None),
    "mnrl_same_kind": (
        ranking(None, directions=("query_to_doc", "query_to_query", "doc_to_doc")),
        [A, P, N],
        None,
    ),
    "cosent_dot": (
        losses.CoSENTLoss(None, scale=1.0, similarity_fct=util.pairwise_dot_score),
        [A, P],
        VECTORS["scores"],
    ),
    "angle_odd": (losses.AnglELoss(None), [A[:, :23], P[:, :23]], VECTORS["scores"]),
    "triplet_cosine": (
        losses.TripletLoss(None, TripletDistanceMetric.COSINE, triplet_margin=0.3),
        [A, P, N],
        None,
    ),
    "triplet_manhattan": (losses.TripletLoss(None, TripletDistanceMetric.MANHATTAN), [A, P, N], None),
    "contrastive_euclidean": (
        contrastive(None, SiameseDistanceMetric.EUCLIDEAN, margin=9.0, size_average=False),
        [A, P],
        SEVERAL,
    ),
    "contrastive_manhattan": (
        contrastive(None, SiameseDistanceMetric.MANHATTAN, margin=40.0),
        [A, P],
        SEVERAL,
    ),
    "online_contrastive_several": (losses.OnlineContrastiveLoss(None, margin=1.5), [A, P], SEVERAL),
    "online_contrastive_one_kind": (losses.OnlineContrastiveLoss(None), [A, P], SEVERAL * 0 + 1),
    "batch_hard_cosine": (
        losses.BatchHardSoftMarginTripletLoss(
            None, BatchHardTripletLossDistanceFunction.cosine_distance
        ),
        [A],
        SEVERAL,
    ),
    "batch_hard_one_class": (losses.BatchHardSoftMarginTripletLoss(None), [A], SEVERAL * 0),
    "margin_mse_scores": (
        losses.MarginMSELoss(None, similarity_fct=util.pairwise_cos_sim),
        [A, P, N, M],
        SCORES,
    ),
    "matryoshka": (Cut(ranking(None), (24, 8), (1.0, 0.5)), [A, P, N], None),
}


def main():
    found = {}
    for name, (loss, columns, labels) in CASES.items():
        tensors = [torch.tensor(one, requires_grad=True) for one in columns]
        given = None if labels is None else torch.tensor(labels)
        value = loss.compute_loss_from_embeddings(tensors, given)
        value.backward()
        found[f"{name}/loss"] = value.detach().numpy()
        for number, one in enumerate(tensors):
            found[f"{name}/grad{number}"] = one.grad.numpy()
    np.savez(HERE / "more_losses.npz", **found)


if __name__ == "__main__":
    main()
