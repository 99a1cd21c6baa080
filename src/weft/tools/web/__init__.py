"""The tools that reach the web; what describes them is with the other built-in ones."""
