"""Tool cards as tests need them: an edit of calc.py, a command, a read."""

from __future__ import annotations

from typing import Any

from weft.messages import ToolResult
from weft.view import ToolCard

DIFF = """\
--- calc.py
+++ calc.py
@@ -7,5 +7,5 @@

 def add(a, b):
     # add two numbers
-    return a - b
+    return a + b

 def sub(a, b):
     return a - b"""


def card(name: str, text: str = "", **fields: Any) -> ToolCard:
    own = {
        key: fields.pop(key)
        for key in ("was_shown", "duration_ms", "output", "allowed_by", "allowed_for")
        if key in fields
    }
    args = fields.pop("args", {})
    # An id.
    result = ToolResult(call_uid="c", text=text, **fields)  # type: ignore[arg-type]
    return ToolCard(name=name, args=args, result=result, **own)


def shell(command: str, text: str = "", *, code: int = 0, **fields: Any) -> ToolCard:
    data = {"exit_code": code, **fields.pop("data", {})}
    return card("shell", text, args={"command": command}, data=data, is_error=code != 0, **fields)


def edit(**fields: Any) -> ToolCard:
    args = {"path": "/work/calc/calc.py"}
    return card("edit", "edited", args=args, data={"diff": DIFF}, **fields)


def read(path: str) -> ToolCard:
    return card("read", "1", args={"path": path})
