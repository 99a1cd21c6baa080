"""A small project, and a secret in a folder beside it that nothing in the project may reach."""

from __future__ import annotations

from pathlib import Path

SECRET = "what lies outside"


def make_project(folder: Path) -> Path:
    """`folder/project`; `folder/outside/secret.txt` holds the secret."""
    root = folder / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\n")
    (root / "src" / "deep" / "leaf.txt").write_text("leaf\n")
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    return root
