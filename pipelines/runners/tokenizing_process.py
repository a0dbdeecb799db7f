"""Loads what a tokenizing process needs: imported once by the process that workers are forked from.

TensorFlow writes some ten lines about itself to standard error while it is imported; here they
would stand between the lines of progress.
"""

import os

_kept = os.dup(2)
_nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(_nowhere, 2)
try:
    import keras_bert_impl.tokenization.kernels  # noqa: F401
finally:
    os.dup2(_kept, 2)
    os.close(_kept)
    os.close(_nowhere)
