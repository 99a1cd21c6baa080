"""Permission rules as programs use them: listed, added, removed, and explained.

Judges nothing itself: the policy is `weft.permissions`.
"""
