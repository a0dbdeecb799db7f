"""Reading and writing the weights of other programs and our own."""
