"""What is said where something waits: whether any program wakes it."""

from __future__ import annotations

from typing import Final

from weft.app import App
from weft.cli.operate.background_run import running_server
from weft.server import running_servers

NO_SERVER: Final = "nothing will run until Weft is started again: `weft serve --detach`"


def server_notice(app: App) -> str:
    """Empty where a server of this user runs; one is started where the user wants that."""
    if running_servers(app.places.servers):
        return ""
    if not app.config.get("serve.autostart"):
        return NO_SERVER
    running_server(app)
    return "a server was started for what waits: `weft serve status`"
