"""The files of the page, as they were built; it may be missing in a checkout."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from weft.server.errors import error_response

PACKED: Final = ".br"
"""Ends the name of a file that the build has compressed beside the plain one."""
ICONS: Final = ("/icon.svg", "/favicon.ico")
_TYPES: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml"}
FOREVER: Final = "public, max-age=31536000, immutable"
"""Of files whose name has the hash of their content."""


def page_folder() -> Path:
    """Where the built page lies."""
    return Path(__file__).parent.parent / "web" / "page"


NOT_BUILT: Final = "the page is not built here: run `make web`"


def has_page(folder: Path | None = None) -> bool:
    """Whether the page is built."""
    return ((folder or page_folder()) / "index.html").is_file()


class _Reading:
    """An endpoint that is only read, and refuses the rest as the API does."""

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            answer = await self._answer(Request(scope, receive))
        else:
            answer = error_response(405, "method", "this path takes GET", {"allow": "GET"})
        await answer(scope, receive, send)


class PageFiles:
    """Answers with files of one folder, and of no other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._assets: dict[str, bytes] = {}
        """What was sent before: a name stands for one content, another build has other names."""

    def routes(self) -> list[Route]:
        """What is served besides the API."""
        return [
            Route("/", _Reading(self._index)),
            *(Route(path, _Reading(self._icon)) for path in ICONS),
            Route("/assets/{name}", _Reading(self._asset)),
        ]

    async def _index(self, request: Request) -> Response:
        del request
        return await self._file("index.html", "no-store")

    async def _icon(self, request: Request) -> Response:
        del request
        return await self._file("icon.svg", "no-cache")

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        # One name, no path: what it stands for lies in the folder itself.
        if name.startswith(".") or "/" in name or "\\" in name or "\0" in name:
            return error_response(404, "path", "there is no such file")
        accepted = request.headers.get("accept-encoding", "")
        takes_brotli = any(each.split(";")[0].strip() == "br" for each in accepted.split(","))
        return await self._file(f"assets/{name}", FOREVER, takes_brotli=takes_brotli)

    async def _file(self, name: str, caching: str, *, takes_brotli: bool = False) -> Response:
        headers = {"cache-control": caching, "vary": "accept-encoding"}
        content = await self._content(f"{name}{PACKED}") if takes_brotli else None
        if content is not None:
            headers["content-encoding"] = "br"
        else:
            content = await self._content(name)
        if content is None:
            if not await anyio.Path(self._folder / "index.html").exists():
                return error_response(404, "page", NOT_BUILT)
            return error_response(404, "path", "there is no such file")
        kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0]
        return Response(
            content,
            200,
            headers,
            kind or "application/octet-stream",
        )

    async def _content(self, name: str) -> bytes | None:
        """The bytes of a file; None where there is none, or where no file can have that name."""
        if name in self._assets:
            return self._assets[name]
        try:
            content = await anyio.Path(self._folder / name).read_bytes()
        except OSError:
            return None
        if name.startswith("assets/"):
            self._assets[name] = content
        return content
