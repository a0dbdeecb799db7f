"""Official metrics in NumPy."""
