"""Names that are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.process
def test_a_name_that_is_also_a_module_is_the_name() -> None:
    """In a process of its own: the first import decides."""
    code = "from weft.permissions import grant_text; assert grant_text('edit(a.py)')"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
