"""Adaptation: a trained BERT goes on with a text of one's own and the words that it lacks."""
