"""Summaries of a session that its user asks for; loaded with the first one."""
