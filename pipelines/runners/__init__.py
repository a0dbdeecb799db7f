"""The engines that run the data work: local processes and Beam."""
