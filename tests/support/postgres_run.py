"""Run a command beside a Postgres server: `python -m tests.support.postgres_run COMMAND …`.

The tests of a world then run on a store there, and on no other.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.postgres_server import PostgresServer
from tests.support.world import POSTGRES


def main(command: list[str]) -> int:
    """Start a server, run the command, stop the server."""
    with PostgresServer() as server:
        environ = {**os.environ, POSTGRES: server.dsn()}
        return subprocess.run(command, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
