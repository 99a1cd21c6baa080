"""MCP servers of a project, for programs and screens: `app.mcp`."""
