"""The four systems that Weft takes after, each by its own documented example: translated, and run
from start to end.
"""
