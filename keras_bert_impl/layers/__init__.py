"""The layers BERT is made of, one class a file, on any Keras backend."""
