"""Branches of a node, written by several models at once."""
