"""Bisections: a check on the project's files at each state of a session's line, in overlays that
leave nothing.
"""
