"""The turns of a session: scheduled, run, followed by the next, and recovered after a crash."""
