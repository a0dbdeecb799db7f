"""The layers BERT is made of, on any Keras backend."""
