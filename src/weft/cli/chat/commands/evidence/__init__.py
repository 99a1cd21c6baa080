"""The chat's commands for what the log of a session proves."""
