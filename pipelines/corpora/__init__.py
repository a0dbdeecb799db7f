"""Reading text collections and splitting them into sentences."""
