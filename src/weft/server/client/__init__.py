"""The client of a server: the calls of the API, over HTTP, for programs elsewhere."""

__all__: list[str] = []
