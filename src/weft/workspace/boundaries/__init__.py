"""Edit boundaries: which lines of a file may change, and the workspace that enforces them."""

__all__ = []
