"""Models that other TensorFlow and Keras libraries saved, and what they give there.

The folders were made by those libraries; the scripts beside them say how.
"""

import numpy as np

from tests.support.tiny_bert import GOLDEN

ELSEWHERE = GOLDEN / "elsewhere"
TRANSFORMERS, TF_MODELS = ELSEWHERE / "transformers_tf", ELSEWHERE / "tf_models"
KERAS_HUB = ELSEWHERE / "keras_hub"


def outputs_of(*files):
    """The inputs and outputs in some files, by their names."""
    found = {}
    for file in files:
        with np.load(file) as numbers:
            found |= dict(numbers)
    return found


def check(model_class, folder, inputs, wanted, **options):
    """Compares outputs, named as here, with those of the other library."""
    outputs = model_class.from_pretrained(folder, **options)(inputs)
    for name, numbers in wanted.items():
        ours = np.asarray(outputs[name]).reshape(numbers.shape)
        np.testing.assert_allclose(ours, numbers, rtol=0, atol=1e-5)
