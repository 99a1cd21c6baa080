"""Painters of the chat's record: blocks and a width in, styled lines out.

Pure: nothing here reads a terminal, an environment or a clock.  Foreign text is cleaned before it
is painted, so that every escape sequence in a painted line is ours.
"""
