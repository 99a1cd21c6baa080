"""The screens of the chat: the terminal, the plain one, and what both draw with."""
