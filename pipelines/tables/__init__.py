"""Tables as people have them: CSV, TSV and JSON in, tables of answers out."""
