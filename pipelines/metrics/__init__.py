"""Official metrics, thin over NumPy and SciPy."""
