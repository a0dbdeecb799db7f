"""The training step, loop, checkpoints and metrics."""
