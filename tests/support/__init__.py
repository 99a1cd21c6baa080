"""Helpers that several test modules share, one to a file."""
