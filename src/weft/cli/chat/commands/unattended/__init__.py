"""The chat's commands for what is done with no user there."""
