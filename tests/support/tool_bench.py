"""The built-in tools at work in a project, without a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.ids import CallUid
from weft.tools import PreparedCall, ReadLog, Tool, ToolContext, ToolOutcome, builtin_tools
from weft.workspace import LocalRunner, LocalWorkspace


class ToolBench:
    """Prepares and runs calls as a turn would, one after the other."""

    def __init__(self, root: Path, runner: LocalRunner) -> None:
        self.root = root
        self.shown: list[str] = []
        self.context = ToolContext(
            workspace=LocalWorkspace(str(root)),
            runner=runner,
            reads=ReadLog(),
            call_uid=CallUid("cal_test"),
            emit=self.shown.append,
        )
        self.tools: dict[str, Tool] = builtin_tools()

    async def prepare(self, tool: str, **args: Any) -> PreparedCall:
        """Only the first step."""
        return await self.tools[tool].prepare(args, self.context)

    async def run(self, tool: str, **args: Any) -> ToolOutcome:
        """Both steps."""
        return await (await self.prepare(tool, **args)).run()

    async def text(self, tool: str, **args: Any) -> str:
        """What the model reads."""
        return (await self.run(tool, **args)).text

    def write(self, name: str, content: str | bytes) -> Path:
        """Another program writes a file."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file
