"""A room of formats: each opens a checkpoint as a `TensorSource`."""
