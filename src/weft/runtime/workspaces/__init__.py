"""The workspaces of sessions: one made for each project, its file history, its sandbox, and what a
session may change.
"""
