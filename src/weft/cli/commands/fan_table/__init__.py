"""The table of a fan-out on a terminal: drawn over itself, with keys to decide by."""
