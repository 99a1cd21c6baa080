"""Maintainers' programs; nothing that is installed uses them."""
