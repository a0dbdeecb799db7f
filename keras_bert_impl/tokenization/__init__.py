"""From text to BERT's word pieces, offline and in the TensorFlow graph."""
