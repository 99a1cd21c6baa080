"""Judges from outside: the vendors' own programs and data, where they are installed."""
