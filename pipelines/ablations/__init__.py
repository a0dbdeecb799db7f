"""The paper's ablations: the runs that its tables need, each once, and the tables made of them."""
