"""Whole jobs, each a function of a config dataclass: what a tool calls."""
