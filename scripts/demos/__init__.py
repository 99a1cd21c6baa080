"""Demos of a minute each, with scripted models: `make demo-…`."""
