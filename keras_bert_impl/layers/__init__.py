"""The layers BERT is made of, on Keras' backends TensorFlow and JAX."""
