"""Estimates of work, memory and time."""
