"""Vectors of texts as a task: pairs, triples, scores or classes of texts, and what is trained."""
