"""The operations of the HTTP API, by what they are about; `weft.server.operations` has them all."""

__all__: list[str] = []
