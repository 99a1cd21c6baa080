"""The protocol of programs that drive us, shared by every edge: session options, stream-json lines,
and the names of the Agent SDK.

Knows the API and pure values; reads no terminal, no socket and no file.
"""

__all__ = []
