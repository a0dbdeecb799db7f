"""Tags on words or characters (named entities): column files in, entities with offsets out."""
