"""Questions answered by a span of a passage: SQuAD's files in, the original's files out."""
