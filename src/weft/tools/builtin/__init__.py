"""The tools that come with Weft; the code of each is loaded when it is first called."""

__all__ = []
