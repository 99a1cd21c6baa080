"""What a session does with no user there: waits, and prompts that are sent later."""
