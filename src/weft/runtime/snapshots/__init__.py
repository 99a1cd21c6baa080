"""Snapshots of a project's files in the log of a session: taken around the effects of turns, and
rebuilt for a message.
"""
