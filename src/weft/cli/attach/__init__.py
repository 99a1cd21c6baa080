"""`weft attach`: the chat on a session of a server, for any number of windows at once.

Owns what the chat needs of an application whose sessions are elsewhere; knows the server by its
client alone.
"""

__all__: list[str] = []
