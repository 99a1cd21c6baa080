"""File descriptors: everything is written, or it is an error."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import SRC, files_with, nodes
from weft.file_io import read_all, write_all

LIMITED = """
import errno, os, resource, sys
from weft.file_io import read_all, write_all
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
assert os.write(fd, b"a" * 90) == 90
try:
    write_all(fd, b"b" * 20)
except OSError as error:
    sys.exit(0 if error.errno == errno.EFBIG else 1)
sys.exit(2)
"""


@pytest.mark.process
def test_a_write_that_the_system_cuts_short_is_an_error_and_not_silence(tmp_path: Path) -> None:
    """The first call takes the ten bytes that fit, and returns as if all was well."""
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path / "f"], check=False)
    assert done.returncode == 0
    assert (tmp_path / "f").read_bytes() == b"a" * 90 + b"b" * 10


def test_all_bytes_arrive(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
    data = bytes(range(256)) * 10_000
    write_all(fd, data)
    write_all(fd, b"")
    os.close(fd)
    assert (tmp_path / "f").read_bytes() == data


def test_there_is_no_second_way_to_write_all() -> None:
    """The loop `view = view[os.write(fd, view) :]` stands in one file, whatever its name."""
    loops = {
        str(file.relative_to(SRC))
        for file in files_with("os.write(")
        for node in nodes(file)
        if isinstance(node, ast.Slice) and "os.write(" in ast.unparse(node)
    }
    assert loops == {"file_io.py"}


@pytest.mark.parametrize("size", [0, 4_999, 5_000, 5_001, 10_000_000])
def test_all_is_read_whatever_size_it_was_said_to_have(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5_000)
    for most, expected in ((4_000, 4_000), (5_000, 5_000), (9_000, 5_000)):
        with path.open("rb") as file:
            assert len(read_all(file.fileno(), most, size)) == expected


def test_no_other_function_says_that_it_writes_all() -> None:
    named = {
        str(file.relative_to(SRC))
        for file in files_with("write_all")
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.strip("_") == "write_all"
    }
    assert named == {"file_io.py"}
