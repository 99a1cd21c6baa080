"""Sessions at work in this process: the registry, the ports that lead to them, and the services
that they share.

Wires models, tools, workspaces and hooks into turns, and reaches sessions that another process
owns. The API above turns calls into commands.
"""

__all__ = []
