"""Trees in files: our own JSON, that of other looms, exports of chats, and pages to read.

`tree_file` reads any of them and `tree_export` writes.  Pure: files are the caller's.  What is read
was written by others: it is checked, bounded and taken as text, and nothing in it is ever run.
"""
