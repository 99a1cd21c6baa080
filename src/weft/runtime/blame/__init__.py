"""Blame: the versions of a project's files from the logs of its sessions, a line followed back
through them, and what the log tells of the change that wrote it.
"""
