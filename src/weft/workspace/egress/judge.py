"""What decides which hosts a command may reach, and what was refused to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from weft.workspace.base import ProcessCommand


class RefusedHost(NamedTuple):
    """A host that a command was kept from."""

    host: str
    port: int
    why: str
    rule: str = ""
    """The rule that would allow it; empty where none could."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.why})"


class EgressJudge(Protocol):
    """Says what one command may reach.  Hosts are as `plain_host` writes them."""

    def plain_host(self, text: str) -> str:
        """A host in the one spelling that is compared; empty for what is none."""
        ...

    def refused(self, host: str, port: int) -> RefusedHost | None:
        """Why a host may not be reached; None when it may."""
        ...

    def refused_address(self, host: str, number: str, port: int) -> RefusedHost | None:
        """Why an address that a host leads to may not be reached; None when it may."""
        ...

    def names_port(self, host: str, port: int) -> bool:
        """Whether exactly this port is allowed, so that it may speak any language."""
        ...

    @property
    def local_names(self) -> frozenset[str]:
        """Names of the loopback by which this machine is meant, and not the sandbox."""
        ...


CommandEgress: TypeAlias = "Callable[[ProcessCommand], EgressJudge | None]"
"""Says what a command may reach; None where that is nothing."""


def no_egress(command: ProcessCommand) -> None:
    """No host is reached."""
