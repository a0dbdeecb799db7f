"""The encoder's vectors of lines of text, and the files they go to."""
