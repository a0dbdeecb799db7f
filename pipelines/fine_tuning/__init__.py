"""The engine of fine-tuning: a run of any task that keeps its contract."""
