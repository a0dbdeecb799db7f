"""Official metrics, thin over scikit-learn and SciPy."""
