"""The order of the data, and batches of it."""
