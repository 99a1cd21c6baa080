"""MCP servers of sessions: which may be started, in what, and what their calls change."""
