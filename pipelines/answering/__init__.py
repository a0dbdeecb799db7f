"""Answers of a trained model to texts, whatever it is for and whatever computes it."""
