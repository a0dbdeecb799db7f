"""Vectors of whole texts: made for any number of lines, and searched."""
