"""From text to BERT's WordPiece tokens, offline and in the TensorFlow graph; see README.md."""
