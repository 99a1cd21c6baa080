"""Log records as lines of JSON on standard error, for whatever collects them."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Final

from weft.cli.logs import redactor

FIELDS: Final = ("session", "operation", "status", "ms")
"""What a record may have besides its message."""


def log_json() -> None:
    """Write the records of the server and all below it as JSON lines, requests included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("weft")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """One object a record; secrets are masked in all of it."""

    def __init__(self) -> None:
        super().__init__()
        self._redact = redactor()

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        made: dict[str, Any] = {
            "at": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}"
            f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        made |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            made["traceback"] = self._redact(self.formatException(record.exc_info))
        return json.dumps(made, ensure_ascii=True)
