"""The work of a session: the task that runs a turn, and what its mailbox takes."""
