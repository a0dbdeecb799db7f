"""One of several endings to choose (SWAG): a context and its choices in, which one out."""
