"""Ports to sessions: of this process, through hooks, and of the process that owns them."""
