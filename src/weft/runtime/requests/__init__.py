"""Requests that were sent: which there were, and what each said, made again from the log."""
