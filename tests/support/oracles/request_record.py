"""The vendors on loopback, who keep the bytes of each request instead of judging it."""

from __future__ import annotations

import json
from typing import Any

import anyio

from tests.support.loopback_server import ReceivedRequest
from tests.support.oracles.vendor_world import OracleWorld
from weft.sha256 import sha256


class RecordingWorld(OracleWorld):
    """Keeps the body of each request for an answer, in the order in which they came."""

    by_types = False

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def receive(self, asked: ReceivedRequest) -> None:
        body = json.loads(asked.body)
        if body.get("tools") or body.get("toolConfig"):
            self.bodies.append(bytes(asked.body))

    def judge(self, provider: str, protocol: str, model: str, body: dict[str, Any]) -> None:
        self.requests += 1
        arrived, self._next = self._next, anyio.Event()
        arrived.set()

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of each body."""
        return [sha256(body).hexdigest() for body in self.bodies]
