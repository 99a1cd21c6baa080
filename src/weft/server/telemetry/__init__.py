"""What a server tells those who run it: numbers, and traces of turns."""

__all__: list[str] = []
