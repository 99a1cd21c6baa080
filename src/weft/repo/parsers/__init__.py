"""Parsers of source files: which one reads which language, and the processes that they run in.

Only an indexer loads them.
"""
