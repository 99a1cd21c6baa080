"""What the log shows: claims of the model beside what was run."""

from __future__ import annotations

from weft.api.evidence.receipts import reply_receipts, session_receipts

__all__ = ["reply_receipts", "session_receipts"]
