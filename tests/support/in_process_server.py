"""The MCP server that a program which drives us has inside itself, as the other side of
`mcp_message` requests."""

from __future__ import annotations

from typing import Any

from tests.support.stream_json_driver import SdkDriver, answer

ADD: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}


def result_of(message: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What the server answers a message; None for a notification."""
    if "id" not in message:
        return None
    match message["method"]:
        case "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "calc", "version": "1.0.0"},
            }
        case "tools/list":
            result = {"tools": tools}
        case "tools/call":
            given = message["params"]["arguments"]
            text = str(given["a"] + given["b"])
            result = {"content": [{"type": "text", "text": text}], "isError": False}
        case method:
            error = {"code": -32601, "message": f"no {method}"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class InProcessServer:
    """Answers what a driver is asked of it, and keeps the messages."""

    def __init__(self, driver: SdkDriver, *tools: dict[str, Any], name: str = "calc") -> None:
        self._driver = driver
        self._name = name
        self._tools = list(tools or (ADD,))
        self.seen: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        """All lines that were read on the way."""

    def serve_until(self, *methods: str) -> None:
        """Answer messages until each of these was asked for."""
        while not set(methods) <= {each["method"] for each in self.seen}:
            self.told += self._driver.until("control_request")
            self.take(self.told[-1])

    def take(self, asked: dict[str, Any]) -> None:
        """Answer one message."""
        request = asked["request"]
        assert (request["subtype"], request["server_name"]) == ("mcp_message", self._name)
        message = request["message"]
        self.seen.append(message)
        said = result_of(message, self._tools) or {"jsonrpc": "2.0", "result": {}}
        self._driver.send(answer(asked, mcp_response=said))
