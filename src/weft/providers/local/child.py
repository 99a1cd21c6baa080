"""The child process that runs one model.  A program of its own: it imports nothing of Weft.

It reads one line of JSON from its standard input (the key is in there, never in the arguments,
where every process of the machine could read it), serves on a unix socket, says `ready`, and ends
when its input ends: a parent that dies, however it dies, takes it along.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from importlib import import_module
from typing import Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the parent is gone."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    _bound(settings["memory_bytes"])
    try:
        server = _serve(settings)
    # Whatever it is: the parent waits for one line.
    except BaseException as error:
        _say(f"error {type(error).__name__}: {error}")
        os._exit(1)
    _say("ready")
    sys.stdin.read()
    del server  # kept alive until here
    os._exit(0)  # without waiting for a generation that still runs


def _say(line: str) -> None:
    print(line.replace("\n", " "), flush=True)


def _bound(memory_bytes: int) -> None:
    """No more memory than allowed, no core dump of the conversation, no life without the parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Counts private writable memory: not the weights, which are mapped from their file.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # Not on every system, and the parent may have died before this call: the end of our input
    # covers both.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.umask(0o077)


def _serve(settings: dict[str, Any]) -> Any:
    xllamacpp = import_module("xllamacpp")  # optional, and only this process may load it
    threads = settings["threads"]
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.n_parallel = settings["slots"]
    # One store for all slots: divided, each would have an eighth of it, and several short texts
    # could not be continued at once without the memory for as many long ones.
    params.kv_unified = True
    params.n_ctx = settings["context"]
    # Small batches: a request that is cancelled while its prompt is read stops within a second.
    params.n_batch = params.n_ubatch = 128
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.verbosity = -1
    # A path is taken as a unix socket, and no TCP port is opened: web pages can reach those.
    params.hostnames = [settings["socket"]]
    params.api_keys = [settings["key"]]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
