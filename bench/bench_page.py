"""The web page in Chromium while an answer streams: weight, first paint, and the time from an event
to the screen.

The server is a process of its own, tabs show the session, and other readers follow it over SSE.
Beside each time stands whose processor time it was: on a busy machine only that says something.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread

from bench.event_readers import ReaderOrder, event_readers
from bench.process_times import ProcessTimes
from bench.scenes import run as run_async
from bench.table import Row

PAGE = Path(__file__).parents[1] / "src" / "weft" / "web" / "page"
TABS, READERS = 5, 200
FEW_TABS, FEW_READERS = 1, 20
PIECES = 3_000
PACE_SECONDS = 0.005
RATE = 190.0
"""Pieces a second that must come for the rest to count."""
READERS_NAP = 0.03
"""How long readers over SSE sleep: only the tabs are looked at here."""
LOADS = 5
TEXT = (
    "Some **words** with `code`, a [link](https://example.org) and more of it.\n\n- one\n- two\n\n"
)
WATCH = """() => {
    window.seen = []; window.tasks = []; window.drawn = 0;
    new PerformanceObserver(list => {
        for (const each of list.getEntries()) tasks.push(each.duration);
    }).observe({type: 'longtask'});
    // An event has come to the screen after the frame in which the answer's words changed: what a
    // frame's own callbacks send themselves comes right behind its painting.
    let waiting = [], inFrame = false;
    const told = [];
    const after = new MessageChannel();
    after.port1.onmessage = () => {
        inFrame = false;
        const now = Date.now();
        for (const at of told.splice(0)) seen.push(now - at * 1000);
    };
    const ask = window.requestAnimationFrame.bind(window);
    const painted = () => { inFrame = true; after.port2.postMessage(0); };
    window.requestAnimationFrame = then => ask(time => { painted(); then(time); });
    new MutationObserver(list => {
        if (!waiting.length) return;
        if (!list.some(each => each.target.parentElement?.closest('.streaming'))) return;
        told.push(...waiting);
        waiting = [];
        drawn += 1;
        if (!inFrame) ask(painted);
    }).observe(document, {subtree: true, childList: true, characterData: true});
    const Plain = WebSocket;
    window.WebSocket = class extends Plain {
        constructor(...given) {
            super(...given);
            this.addEventListener('message', message => {
                const found = /"kind":"text_delta"[^}]*?"at":([0-9.]+)/.exec(message.data);
                if (found) waiting.push(Number(found[1]));
            });
        }
    };
}"""


class StreamNumbers(NamedTuple):
    """What was measured while an answer came."""

    waits: list[float]
    """From event to screen, of all tabs."""
    longest_task: float
    drawn: int
    """Drawings, of all tabs."""
    seconds: float
    times: dict[str, float]
    """Seconds of processor time, by process or thread."""
    memory: float

    def wait(self, share: float) -> float:
        """So many of a hundred waits were no longer."""
        ordered = sorted(self.waits) or [float("inf")]
        return ordered[int((len(ordered) - 1) * share)]


def run() -> list[Row]:
    """The page alone, then with many readers and tabs, then with few."""
    if shutil.which("chromium") is None or not (PAGE / "index.html").exists():
        print("no chromium, or the page is not built (make web): left out", file=sys.stderr)
        return []
    return [
        *_weight_rows(),
        *run_async(_first_screen),
        *_stream_rows(TABS, READERS, limit=100),
        *_stream_rows(FEW_TABS, FEW_READERS, limit=60),
        *run_async(_task_rows),
    ]


# -- what the first screen loads


def _weight_rows() -> list[Row]:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    first = set(re.findall(r"/(assets/[^\"]+)", html))
    sizes = {
        f"assets/{file.name.removesuffix('.br')}": file.stat().st_size
        for file in (PAGE / "assets").glob("*.br")
    }
    late = [size for name, size in sizes.items() if name not in first]
    return [
        Row("page, first load, br", sum(sizes[name] for name in first) / 1000, "KB", limit=90),
        Row("page, its largest late part, br", max(late) / 1000, "KB", limit=40),
    ]


async def _first_screen() -> list[Row]:
    """Several first visits, each with nothing in the browser's cache."""
    paints, usable = [], []
    async with page_world([["x"]]) as world:
        kept = await world.paired()
        for _ in range(LOADS):
            page = await (await world.browser_context(kept)).new_page()
            began = time.perf_counter()
            await page.goto(world.url)
            await page.locator(".shell").wait_for()
            usable.append((time.perf_counter() - began) * 1000)
            paints.append(await page.evaluate(FIRST_PAINT))
            await page.context.close()
    return [
        Row("page, first paint", statistics.median(paints), "ms", limit=300),
        Row("page, usable", statistics.median(usable), "ms", limit=1_000),
    ]


FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


# -- while an answer comes


def _stream_rows(tabs: int, readers: int, *, limit: float) -> list[Row]:
    found = run_async(lambda: _streamed(tabs, readers))
    share = {name: 100 * spent / found.seconds for name, spent in found.times.items()}
    drawing = share["raster"] + share["compositor"] + share["gpu"]
    return [
        Row(
            f"pieces a second to {tabs} tabs, {readers} SSE (load {os.getloadavg()[0]:.0f})",
            PIECES / found.seconds,
            "/s",
            limit=RATE,
            better="more",
        ),
        Row("event to paint, p50", found.wait(0.5), "ms", limit=40),
        Row("event to paint, p99", found.wait(0.99), "ms", limit=limit),
        Row("longest task while streaming", found.longest_task, "ms", limit=50),
        Row("server while streaming, of one core", share["server"], "%", limit=20),
        Row("server, memory", found.memory, "MB", limit=80),
        Row("where the time goes, of one core: scripts and layout of the tabs", share["main"], "%"),
        Row("…, drawing", drawing, "%"),
        Row("…, readers", share["readers"], "%"),
        Row("…, the benchmark and the browser's own", share["rest"], "%"),
        Row("drawings a second and tab", found.drawn / found.seconds / tabs, "/s"),
        Row(
            "scripts and layout for each drawing",
            1000 * found.times["main"] / max(1, found.drawn),
            "ms",
        ),
    ]


async def _streamed(tabs: int, readers: int) -> StreamNumbers:
    async with page_world(_long_answer()) as world:
        pages = [await world.opened_session()]
        kept = await pages[0].context.storage_state()
        for _ in range(tabs - 1):
            # A window each: of several tabs of one window a browser draws the foremost alone.
            pages.append(await (await world.browser_context(kept)).new_page())
            await pages[-1].goto(pages[0].url)
            # The first tab drives: the others have no message field.
            await pages[-1].locator(".viewer").wait_for()
        order = world.order(pages[0].url.split("/s/")[1].split("/")[0], readers)
        with event_readers(order) as reading:
            for page in pages:
                await page.evaluate("tasks.length = 0")
            before, began = ProcessTimes.of_children(), time.perf_counter()
            await _send(pages[0])
            await anyio.to_thread.run_sync(reading.report)
            seconds = time.perf_counter() - began
            times = ProcessTimes.of_children().since(before)
        for page in pages:
            await page.locator(".streaming").wait_for(state="detached")
        return StreamNumbers(
            waits=[wait for page in pages for wait in await page.evaluate("seen")],
            longest_task=max(
                [task for page in pages for task in await page.evaluate("tasks")] + [0]
            ),
            drawn=sum([await page.evaluate("drawn") for page in pages]),
            seconds=seconds,
            times=times,
            memory=_memory(world.process.pid),
        )


def _long_answer() -> list[Any]:
    text = (TEXT * (PIECES * 8 // len(TEXT) + 1))[: PIECES * 8]
    return [[{"do": "text", "text": text, "chunk": 8}]]


async def _send(page: Any) -> None:
    await page.locator("#message").fill("Go.")
    await page.locator("#message").press("Enter")


async def _task_rows() -> list[Row]:
    """The same by Chromium's trace, which knows how much of a task was processor time."""
    async with page_world(_long_answer()) as world:
        page = await world.opened_session()
        await world.browser.start_tracing(page=page, categories=["devtools.timeline", "toplevel"])
        await _send(page)
        await page.locator(".streaming").wait_for()
        await page.locator(".streaming").wait_for(state="detached", timeout=120_000)
        events = json.loads(await world.browser.stop_tracing())["traceEvents"]
    longest = max(_task_times(events), default=0.0)
    return [Row("longest task while streaming, processor time", longest, "ms", limit=50)]


def _task_times(events: list[dict[str, Any]]) -> Iterator[float]:
    """Milliseconds of processor time of each task of the page's own thread."""
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    for each in events:
        if "RunTask" in each["name"] and (each["pid"], each["tid"]) in main:
            yield each.get("tdur", 0) / 1000


# -- a server and a browser


class PageWorld(NamedTuple):
    """A server with a scripted model, and a browser."""

    process: subprocess.Popen[str]
    link: str
    base: Path
    browser: Any

    @property
    def url(self) -> str:
        """The page, without the code."""
        return self.link.split("#")[0]

    def order(self, session: str, readers: int) -> ReaderOrder:
        """Readers of a session besides the tabs."""
        port = int(self.link.split(":")[2].split("/")[0])
        token = next(self.base.rglob(f"{port}.token")).read_text().strip()
        return ReaderOrder(port, token, session, streams=readers, nap_seconds=READERS_NAP)

    async def browser_context(self, kept: Any = None) -> Any:
        """A window of its own, which notes long tasks, and when events were shown."""
        size = {"width": 1440, "height": 900}
        context = await self.browser.new_context(viewport=size, storage_state=kept)
        await context.add_init_script(f"({WATCH})()")
        return context

    async def paired(self) -> Any:
        """What a window that was let in keeps."""
        context = await self.browser_context()
        page = await context.new_page()
        await page.goto(self.link)
        await page.locator(".shell").wait_for()
        kept = await context.storage_state()
        await context.close()
        return kept

    async def opened(self) -> Any:
        """A tab that was let in."""
        page = await (await self.browser_context()).new_page()
        await page.goto(self.link)
        await page.locator(".shell").wait_for()
        return page

    async def opened_session(self) -> Any:
        """A tab with a new session."""
        page = await self.opened()
        await page.get_by_role("main").get_by_role("button", name="New session").click()
        await page.locator("#message").wait_for()
        return page


@asynccontextmanager
async def page_world(answers: list[Any], base: Path | None = None) -> AsyncIterator[PageWorld]:
    """A server in a home of its own, or in one that was prepared, and a browser."""
    from playwright.async_api import async_playwright  # of the tests; other benchmarks need none

    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as name:
        home = base or Path(name)
        (home / "project").mkdir(exist_ok=True)
        with page_server(home, answers) as (process, link):
            async with async_playwright() as tool:
                program = shutil.which("chromium")
                browser = await tool.chromium.launch(executable_path=program, args=flags)
                yield PageWorld(process, link, home, browser)
                await browser.close()


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


def _memory(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
