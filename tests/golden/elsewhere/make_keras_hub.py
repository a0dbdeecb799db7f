"""Makes `keras_hub/embedder_mean` and `embedder_cls`, and `embedders.npz`.

Run in an environment of its own: `pip install keras-hub==0.32 tensorflow tensorflow-text`.
"""

from pathlib import Path

import keras_hub
import numpy as np

HERE = Path(__file__).parent / "keras_hub"

if __name__ == "__main__":
    given, outputs = np.load(HERE / "outputs.npz"), {}
    backbone = keras_hub.models.BertBackbone.from_preset(str(HERE / "backbone"))
    tokenizer = keras_hub.models.BertTokenizer.from_preset(str(HERE / "backbone"))
    for mode, normalize in (("mean", True), ("cls", False)):
        preprocessor = keras_hub.models.BertTextEmbedderPreprocessor(tokenizer, sequence_length=16)
        embedder = keras_hub.models.BertTextEmbedder(
            backbone, preprocessor, pooling_mode=mode, normalize=normalize
        )
        asked = {name: given[name] for name in ("token_ids", "segment_ids", "padding_mask")}
        outputs[mode] = np.asarray(embedder(asked))
        embedder.save_to_preset(str(HERE / f"embedder_{mode}"))
    np.savez_compressed(HERE / "embedders.npz", **outputs)
