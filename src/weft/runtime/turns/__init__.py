"""What the turns of a session are made of: its settings, its prompt, its tools' contexts, and the
factory that puts them together.
"""
