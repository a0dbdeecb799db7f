"""Sentence pairs and masks as pure functions."""
