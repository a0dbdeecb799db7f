"""Data work: from raw text to batches, and the tasks with their metrics."""
