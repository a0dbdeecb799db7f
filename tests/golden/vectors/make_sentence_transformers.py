"""Makes `sentence_transformers.npz`: what sentence-transformers 6.2 makes of a model written here.

First, from the top and in this project's environment, `write_prompted(FOLDER)` of
`tests.support.model_folders`; then in one with `pip install sentence-transformers==6.2`
`python make_sentence_transformers.py FOLDER`.
"""

import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import quantize_embeddings

TEXTS = ["the dog runs .", "", "a", "the cat sleeps , the dog runs , a list , a value .", "a cat"]

if __name__ == "__main__":
    model = SentenceTransformer(sys.argv[1], device="cpu")
    made = {
        "query": model.encode_query(TEXTS),
        "document": model.encode_document(TEXTS),
        "passage": model.encode(TEXTS, prompt_name="passage"),
        "": model.encode(TEXTS),
        "query_8": model.encode_query(TEXTS, truncate_dim=8, normalize_embeddings=True),
    }
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((40, 13)).astype(np.float32)
    vectors[:, 3] = 0.25  # a number that is always the same
    ranges = np.stack([vectors[:20].min(axis=0), vectors[:20].max(axis=0)])
    for kind in ("int8", "ubinary"):
        made[kind] = quantize_embeddings(vectors, kind)
        made[f"{kind}_of_ranges"] = quantize_embeddings(vectors, kind, ranges=ranges)
    made |= {"vectors": vectors, "ranges": ranges, "texts": np.array(TEXTS)}
    np.savez_compressed(Path(__file__).with_name("sentence_transformers.npz"), **made)
