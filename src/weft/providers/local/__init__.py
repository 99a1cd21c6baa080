"""Models that run here: llama.cpp in a child process, on a private unix socket.

In our own process it would hold the interpreter while it loads, open a port that any web page can
use, and could not be cancelled while it reads a prompt.
"""
