"""Studies: lists of commands, each done once, and what the scores of many runs say together."""
