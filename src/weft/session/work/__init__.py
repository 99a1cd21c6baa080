"""The work of a session: the task that runs a turn, and the journal by which it reaches the log."""
