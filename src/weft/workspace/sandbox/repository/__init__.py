"""What a sandboxed command did to a git repository, read from its files.

The rules that it has to keep, and the questions to git, are in `sandbox/git_guard.py`.
"""
