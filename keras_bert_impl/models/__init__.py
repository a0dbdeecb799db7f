"""The encoder and the models with heads, on any Keras backend."""
