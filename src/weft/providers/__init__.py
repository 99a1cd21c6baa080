"""Models: the neutral request and stream, and one adapter a vendor.

Knows messages, not facts: storing, retrying and deciding are the turn's.
"""
