"""What programs speak with us: the stream-json lines, shared by every edge.

Knows the API and pure values; reads no terminal, no socket and no file.
"""

__all__ = []
