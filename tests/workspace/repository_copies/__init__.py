"""Repositories that go to another machine."""
