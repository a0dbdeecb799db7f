"""What a tokenizing process needs, imported when it starts."""

import sys
import warnings

from keras_bert_impl.quiet_tensorflow import standard_error_held_back

# TensorFlow imports these if they are there; cutting text needs neither, and without them it starts
# in half the time and with 200 MB less. None makes Python say that they are not installed.
for _companion in ("jax", "keras"):
    if _companion not in sys.modules:
        sys.modules[_companion] = None  # type: ignore[assignment]

# The process that starts this one has said what there is to say of the vocabulary.
warnings.simplefilter("ignore", UserWarning)

# TensorFlow's start-up lines would stand between the lines of progress.
with standard_error_held_back():
    pass
