"""Sessions as one operates them: all at a glance, their logs and queues, stopped, in the
background; and the store that keeps them.

Owns the commands; what they do is done by the API and by the store.
"""

__all__: list[str] = []
