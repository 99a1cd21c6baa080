"""Repositories that go to another machine: what is told of one, what of it travels, and how it is
made again.
"""
