"""Panels over the view: each has the keys and the window while it is open."""
