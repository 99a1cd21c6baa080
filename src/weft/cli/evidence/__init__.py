"""Commands that show what a session's log proves."""
