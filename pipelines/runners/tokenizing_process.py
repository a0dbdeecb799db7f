"""What a tokenizing process needs, imported once by the process that workers are forked from."""

from keras_bert_impl.quiet_tensorflow import standard_error_held_back

# TensorFlow's start-up lines would stand between the lines of progress.
with standard_error_held_back():
    import keras_bert_impl.tokenization.kernels  # noqa: F401
