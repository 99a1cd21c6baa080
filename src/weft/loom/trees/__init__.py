"""Trees of text in memory: their words, edits, settings and numbers."""
