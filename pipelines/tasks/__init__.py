"""Fine-tuning tasks: examples, features, head and scorer of each."""
