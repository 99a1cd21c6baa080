"""File history: what files held before a command changed them, and putting them back."""

__all__ = []
