"""The small commands: sessions, models, stats, config, doctor, auth, completion.

Each module has a `run` that takes the arguments and returns the exit code;
`weft.cli.command_line` loads the one that is asked for.
"""

__all__: list[str] = []
