"""Many runs: each once, in a process of its own, with one result file; what their scores say."""
