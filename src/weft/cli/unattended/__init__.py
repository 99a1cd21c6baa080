"""What is done with no user there, on the command line: prompts that are sent later, and waits."""
