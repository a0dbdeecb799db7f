"""The format of pre-training records and their description."""
