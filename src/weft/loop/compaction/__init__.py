"""Compaction: the older part of a line is given to the model as a summary from now on.

`summary` has it written and puts it on record; `room_maker` says when that happens by itself.
"""
