"""The formats of records, shards and their descriptions."""
