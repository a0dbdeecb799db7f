"""Thin command-line tools, one file a job: flags → a config dataclass → one call."""
