"""`weft serve` and `weft web`: the server from the command line.

Only these load `weft.server`; every other command starts without it.
"""

__all__: list[str] = []
