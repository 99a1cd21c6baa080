"""The chat's commands for what comes from other agents."""
