"""MCP servers on the command line and in the chat: `weft mcp`, `/mcp`, and the question about
servers that a project names.
"""
