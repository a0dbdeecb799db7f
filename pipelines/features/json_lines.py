"""Vectors as the original writes them: a JSON object a line of text."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_bert_impl.files import open_whole
from pipelines.features.config import FeaturesConfig
from pipelines.features.extractor import LineFeatures
from pipelines.features.pooling import pool


def write_json(config: FeaturesConfig, features: Iterable[LineFeatures]) -> None:
    """Writes google's form, `linex_index` and a vector a token and layer, or one vector a line.

    Args:
        config: where to, which layers, and whether tokens are pooled.
        features: the vectors of each line.

    Raises:
        UserError: the file cannot be written.
    """
    with open_whole(config.output_file) as file:
        for number, line in enumerate(features):
            rounded = np.round(line.vectors.astype(np.float64), 6)
            tokens = [
                {
                    "token": token,
                    "layers": [
                        {"index": index, "values": rounded[place, position].tolist()}
                        for place, index in enumerate(config.layers)
                    ],
                }
                for position, token in enumerate(line.tokens)
            ]
            # "linex_index" is how the original spells it, and what its readers look for.
            record: dict[str, Any] = {"linex_index": number, "features": tokens}
            if config.pooling != "none":
                vector = pool(line, config.pooling, config.combination)
                record = {"linex_index": number, "values": np.round(vector, 6).tolist()}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
