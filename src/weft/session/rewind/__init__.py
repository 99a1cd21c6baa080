"""Rewinding files and conversation: the plan, and the recorded work of carrying it out."""

__all__ = []
