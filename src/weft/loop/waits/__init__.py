"""Turns that wait: the wait of a call, and what ends it."""
