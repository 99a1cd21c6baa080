"""A limit on the size of files: the disk that is full, without filling one."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process can grow beyond `size`: the kernel cuts the write short, as a full
    disk does.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
