"""Goals: the check between two rounds, the judge, and whether a round brought progress."""
