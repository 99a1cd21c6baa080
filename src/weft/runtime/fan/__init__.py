"""Fan-out: several candidates for one task, each a session in an overlay of its own, verified by
us, ranked, and one of them kept.
"""
