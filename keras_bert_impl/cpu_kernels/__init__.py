"""The computations of `layers/kernels.py` for TensorFlow on CPUs: same results, less time."""
