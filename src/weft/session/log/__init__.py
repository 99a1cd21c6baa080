"""A session's log: facts appended, applied and published, and what is read back from them."""
