"""The encoder and the models with heads, on Keras' backends TensorFlow and JAX."""
