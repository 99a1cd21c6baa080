"""The bottom region of a terminal, drawn by ourselves: keys in, rows out.

Nothing here knows a session.  A row is a string that holds at most one line of text and, of escape
sequences, only those that set attributes.
"""
