"""The engine of fine-tuning: one run, or many, of any task that keeps its contract."""
