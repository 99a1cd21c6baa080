"""The way of a session's tools to the web: pages, and the search services that users configure.

Owns which addresses may be connected to, and the limits of a reply.  Knows no tool.
"""
