"""Ollama, through its own `/api/chat`.

Its OpenAI-compatible address would do for text, but there the context size cannot be set: the
server's default of a few thousand tokens cuts a coding conversation at its beginning, without a
word.
"""
