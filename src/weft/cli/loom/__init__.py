"""`weft loom`: trees of text on the command line.

It reads words and prints; what a tree is, and all that is done to one, belongs to `weft.loom`.
"""
