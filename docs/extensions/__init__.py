"""What Sphinx needs besides its own extensions to build this site."""
