"""Adds to `retrieval.json` what sentence-transformers 6.2 says of its made vectors.

python tests/golden/vectors/make_retrieval.py, where sentence-transformers 6.2 and datasets are
installed. The vectors are whole numbers with ties and doubles (documents 0 to 9 and 10 to 19; 30
and 31, which equal the first query). The last digit of a cosine by a product of float32 matrices
may break a tie of doubles, and then figures change with `corpus_chunk_size`: those that most of
the chunks from 1 to 60 give are kept.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.util import cos_sim, dot_score, mine_hard_negatives, pairwise_cos_sim

FILE = Path(__file__).parent / "retrieval.json"
CASES = [
    {"num_negatives": 3, "range_max": 20},
    {"num_negatives": 2, "range_min": 3, "range_max": 12},
    {"num_negatives": 2, "range_max": 60, "absolute_margin": 0.1},
    {"num_negatives": 4, "range_max": 60, "relative_margin": 0.05},
    {"num_negatives": 2, "range_min": 2, "range_max": 60, "relative_margin": 0.3},
    {
        "num_negatives": 1,
        "range_min": 1,
        "range_max": 60,
        "absolute_margin": 0.2,
        "relative_margin": 0.5,
    },
]


class NoCard:
    @staticmethod
    def set_evaluation_metrics(*_):
        """Keeps nothing."""


class Vectors:
    """What the evaluator and the miner ask of a model: texts are looked up."""

    device, similarity_fn_name, model_card_data = "cpu", "cosine", NoCard
    similarity, similarity_pairwise = staticmethod(cos_sim), staticmethod(pairwise_cos_sim)

    def __init__(self, vectors):
        self.vectors = vectors

    def encode_query(self, texts, convert_to_tensor=False, **_):
        rows = np.array([self.vectors[text] for text in texts], np.float32)
        return torch.from_numpy(rows) if convert_to_tensor else rows

    encode_document = encode_query


def text_of(number):
    """Equal vectors are equal texts."""
    return f"document {30 if number == 31 else number % 10 if number < 20 else number}"


def main():
    made = json.loads(FILE.read_text())
    queries = {f"q{i}": row for i, row in enumerate(made["queries"])}
    documents = {f"d{i}": row for i, row in enumerate(made["documents"])}
    relevant = {name: set(right) for name, right in made["relevant"].items()}
    model = Vectors(queries | documents)

    figures = {}
    padded = {name: f"d{int(name[1:]):02d}" for name in documents}
    for order, ids in (("number", padded), ("id", {name: name for name in documents})):
        for score, function in (("cosine", cos_sim), ("dot", dot_score)):
            counts = Counter()
            for chunk in range(1, 61):
                found = InformationRetrievalEvaluator(
                    {name: name for name in queries},
                    {ids[name]: name for name in documents},
                    {name: {ids[one] for one in right} for name, right in relevant.items()},
                    corpus_chunk_size=chunk,
                    score_functions={score: function},
                    write_csv=False,
                )(model)
                counts[json.dumps({name.split("_")[1]: float(x) for name, x in found.items()})] += 1
            figures[f"{score} by {order}"] = json.loads(counts.most_common(1)[0][0])

    texts = {text_of(i): row for i, row in reversed(list(enumerate(made["documents"])))}
    first = {text_of(i): i for i in reversed(range(len(documents)))}
    rows = [
        {"query": name, "answer": text_of(int(one[1:]))}
        for name, right in made["relevant"].items()
        for one in right
    ]
    mined = []
    for case in CASES:
        found = mine_hard_negatives(
            Dataset.from_list(rows),
            Vectors(queries | texts),
            corpus=list(dict.fromkeys(text_of(i) for i in range(len(documents)))),
            output_format="n-tuple",
            verbose=False,
            **case,
        )
        negatives = {
            int(row["query"][1:]): [
                first[row[f"negative_{i + 1}"]] for i in range(case["num_negatives"])
            ]
            for row in found
        }
        mined.append({"case": case, "negatives": sorted(negatives.items())})
    kept = {name: made[name] for name in ("queries", "documents", "relevant")}
    FILE.write_text(json.dumps(kept | {"figures": figures, "mined": mined}))


if __name__ == "__main__":
    main()
