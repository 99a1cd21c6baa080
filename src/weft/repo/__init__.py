"""What a project holds: its files, the symbols in them, and which of them a request is about."""
