"""Views of a project that stay, each an overlay or a copy of its own, for the candidates of a
fan-out.
"""
