"""`weft web` as a program of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.weft_program import WeftProgram


@contextmanager
def web(
    weft: WeftProgram, port: int, model: str = ""
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`weft web` as a user starts it, and the address that it opens; killed at the end."""
    words = ["web", "--no-open", "--port", str(port)]
    words += ["--set", f"model.default={model}"] if model else []
    process = subprocess.Popen(
        weft.argv(*words),
        env=weft.environment,
        cwd=weft.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            link = next(line for line in process.stdout if "#code=" in line)
            yield process, link.split()[-1]
        finally:
            process.kill()
            process.wait()
