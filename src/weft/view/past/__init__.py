"""What is found in the past of a session, in words: where a check broke, what wrote a line."""

__all__ = []
