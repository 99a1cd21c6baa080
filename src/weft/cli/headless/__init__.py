"""Runs without a terminal: `-p`, `run` and `exec`; the formats of their output."""
