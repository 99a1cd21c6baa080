"""What is shown of a claim: what it says, and what is on record about it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

ClaimKind: TypeAlias = Literal["test", "build", "lint", "types", "format", "all", "search", "other"]
ReceiptColor: TypeAlias = Literal["green", "amber", "grey", "none"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and what is on record about it."""

    claim: str
    """The words of the answer."""
    kind: ClaimKind
    color: ReceiptColor
    """`green`, `amber`, `grey`; `none` for what cannot be judged by what was run."""
    why: str
    """What is on record, in a few words."""
    command: str = ""
    """The run that it is judged by; empty for none."""
    exit_code: int | None = None
    tree: str = ""
    """The hash of the files that this run left; empty where it is not known."""
    call: str = ""
    """The call that ran it."""
