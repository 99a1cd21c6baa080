"""`weft cluster demo`."""
