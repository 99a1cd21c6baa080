"""Child processes: running programs in groups of their own, capturing output, finding orphans."""

__all__ = []
