"""The egress proxy: how a command in the sandbox reaches the hosts that are allowed, and no others.

It knows neither rules nor users: an `EgressJudge` says what may be reached.
"""

__all__ = []
