"""Imported by each tokenizing worker process when it starts: TensorFlow, and nothing it can spare.

Importing this module changes the process, so nothing else imports it.
"""

import sys
import warnings

from keras_bert_impl.backend import standard_error_held_back

# TensorFlow imports these packages where they are installed. Tokenizing needs neither; without them
# it starts in half the time and takes 200 MB less. None makes Python say that they are missing.
for _companion in ("jax", "keras"):
    if _companion not in sys.modules:
        sys.modules[_companion] = None  # type: ignore[assignment]

# The parent process has already warned of what is odd about the vocabulary.
warnings.simplefilter("ignore", UserWarning)

# TensorFlow's start-up messages would break the progress line.
with standard_error_held_back():
    import keras_bert_impl.tokenization.cutting
    import keras_bert_impl.tokenization.kernels  # noqa: F401
