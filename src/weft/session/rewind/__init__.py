"""Rewinding files and conversation: the plan, the restored files, and the recorded work of carrying
it out.
"""

__all__ = []
