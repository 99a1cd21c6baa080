"""Files are replaced and removed in one step, and only as what they were expected to be."""

__all__ = []
