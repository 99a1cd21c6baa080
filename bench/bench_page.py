"""The web page in Chromium while an answer streams: weight, first paint, and the time from an event
to the screen.

The server is a process of its own, one tab shows the session, and other readers follow it over SSE.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.scenes import run as run_async
from bench.table import Row

PAGE = Path(__file__).parents[1] / "src" / "weft" / "web" / "page"
READERS = 20
PIECES = 3_000
PACE_SECONDS = 0.005
TEXT = (
    "Some **words** with `code`, a [link](https://example.org) and more of it.\n\n- one\n- two\n\n"
)
WATCH = """() => {
    window.seen = []; window.tasks = [];
    new PerformanceObserver(list => {
        for (const each of list.getEntries()) tasks.push(each.duration);
    }).observe({type: 'longtask'});
    const Plain = WebSocket;
    window.WebSocket = class extends Plain {
        constructor(...given) {
            super(...given);
            this.addEventListener('message', message => {
                const at = (JSON.parse(message.data).e ?? []).map(each => each.at ?? 0);
                const first = Math.min(...at.filter(Boolean));
                const note = () => seen.push(Date.now() - first * 1000);
                // After the frame that shows it.
                if (Number.isFinite(first)) requestAnimationFrame(() => setTimeout(note));
            });
        }
    };
}"""


class PageNumbers(NamedTuple):
    """What was measured."""

    weight: float
    """Bytes of all that the first screen loads."""
    paint: float
    usable: float
    waits: list[float]
    longest_task: float
    rate: float
    cpu: float
    memory: float


def run() -> list[Row]:
    """One tab and some other readers, at 200 pieces a second."""
    if shutil.which("chromium") is None or not (PAGE / "index.html").exists():
        print("no chromium, or the page is not built (make web): left out", file=sys.stderr)
        return []
    found = run_async(_measure)
    waits = sorted(found.waits)
    where = f"1 tab, {READERS} readers, {found.rate:.0f} pieces a second"
    return [
        Row("page, first load as it is sent", found.weight / 1000, "KB", limit=90),
        Row("page, first paint", found.paint, "ms", limit=300),
        Row("page, usable", found.usable, "ms", limit=1_000),
        Row(f"event to paint, p50 ({where})", waits[len(waits) // 2], "ms", limit=40),
        Row("event to paint, p99", waits[int(len(waits) * 0.99)], "ms", limit=60),
        Row("longest task while streaming", found.longest_task, "ms", limit=50),
        Row("server while streaming", found.cpu * 100, "% of a core", limit=20),
        Row("server, memory", found.memory, "MB", limit=80),
    ]


async def _measure() -> PageNumbers:
    text = (TEXT * (PIECES * 8 // len(TEXT) + 1))[: PIECES * 8]
    answers = [[{"do": "text", "text": text, "chunk": 8}]]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        (base / "project").mkdir()
        with page_server(base, answers) as (process, link):
            async with page_tab() as page:
                return await _streamed(page, process.pid, link, base)


@contextmanager
def page_server(base: Path, answers: list[Any]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`weft web` in a home of its own, with a scripted model; and the link that opens the page."""
    script = base / "script.json"
    script.write_text(json.dumps({"answers": answers, "pace_seconds": PACE_SECONDS}))
    words = [
        "web",
        "--no-open",
        "--port",
        str(_free_port()),
        "--set",
        f"model.default=scripted:{script}",
    ]
    environ = {"HOME": str(base), "PATH": os.environ["PATH"], "WEFT_REPO_INDEX": "off"}
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *words],
        cwd=base / "project",
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        link = next(line for line in process.stdout if "#code=" in line).split()[-1]
        yield process, link
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def page_tab() -> AsyncIterator[Any]:
    """A tab that notes long tasks, and when events were shown."""
    from playwright.async_api import async_playwright  # of the tests; other benchmarks need none

    program = shutil.which("chromium")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    async with async_playwright() as tool:
        browser = await tool.chromium.launch(executable_path=program, args=flags)
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.add_init_script(f"({WATCH})()")
        yield page
        await browser.close()


async def _streamed(page: Any, pid: int, link: str, base: Path) -> PageNumbers:
    started = time.perf_counter()
    await page.goto(link)
    await page.locator(".shell").wait_for()
    usable = (time.perf_counter() - started) * 1000
    paint = await page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    )
    weight = await page.evaluate(
        "performance.getEntriesByType('resource').filter(each => each.name.includes('/assets/'))"
        ".reduce((sum, each) => sum + each.encodedBodySize, 0)"
    )
    await page.get_by_role("main").get_by_role("button", name="New session").click()
    await page.locator("#message").wait_for()
    session = page.url.split("/s/")[1].split("/")[0]
    async with _readers(link, base, session):
        await page.locator("#message").fill("Go.")
        before, begun = _cpu(pid), time.perf_counter()
        await page.evaluate("tasks.length = 0")
        await page.locator("#message").press("Enter")
        await page.locator(".streaming").wait_for()
        await page.locator(".streaming").wait_for(state="detached", timeout=180_000)
        took = time.perf_counter() - begun
        cpu, memory = (_cpu(pid) - before) / took, _memory(pid)
    tasks = await page.evaluate("tasks")
    return PageNumbers(
        weight=weight,
        paint=paint,
        usable=usable,
        waits=await page.evaluate("seen"),
        longest_task=max(tasks, default=0.0),
        rate=PIECES / took,
        cpu=cpu,
        memory=memory,
    )


@asynccontextmanager
async def _readers(link: str, base: Path, session: str) -> AsyncIterator[None]:
    port = int(link.split(":")[2].split("/")[0])
    token = _token(base, port)
    head = (
        f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    )

    async def read() -> None:
        stream, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        while await stream.read(65_536):
            pass

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read()) for _ in range(READERS)]
        yield
        for task in tasks:
            task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


def _token(base: Path, port: int) -> str:
    return next(base.rglob(f"{port}.token")).read_text().strip()


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
