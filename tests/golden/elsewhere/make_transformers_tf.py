"""Makes `transformers_tf/parts` and `transformers_tf/safetensors`: the tagger, saved otherwise.

Run in an environment of its own: `pip install transformers==4.57.6 tf-keras`.
"""

import os
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import transformers

HERE = Path(__file__).parent / "transformers_tf"

if __name__ == "__main__":
    tagger = transformers.TFBertForTokenClassification.from_pretrained(HERE / "tags")
    tagger.save_pretrained(HERE / "parts", max_shard_size="60KB")
    tagger.save_pretrained(HERE / "safetensors", safe_serialization=True)
