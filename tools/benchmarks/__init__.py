"""Comparisons with peers: each prints a table and a JSON line per row."""
