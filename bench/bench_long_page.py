"""The web page with a session of 100,000 messages: opened, scrolled through, looked at from its
beginning.

The session is written into a store, and a server that is a process of its own serves it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_page import PAGE, page_world
from bench.logs import answered_turn, stamped, write_facts
from bench.process_times import ProcessTimes
from bench.scenes import run as run_async
from bench.table import Row
from weft.events import Fact, SessionCreated
from weft.ids import NodeId, SessionId
from weft.session.log.load import keep_snapshot, load_state
from weft.store.sqlite import open_sqlite

MESSAGES = 100_000
SESSION = SessionId("ses_01m7pktafkhz1emdwf9whmd086")
SCROLLS = 150
FRAMES = """async () => {
    const box = document.querySelector('.chat .scroll');
    const times = [];
    let last = performance.now(), most = 0;
    tasks.length = 0;
    for (let step = 0; step < %d; step += 1) {
        box.scrollTop -= 400;
        await new Promise(done => requestAnimationFrame(done));
        const now = performance.now();
        times.push(now - last);
        last = now;
        most = Math.max(most, document.querySelectorAll('.chat .said').length);
    }
    return {times, most, longest: Math.max(0, ...tasks),
            turns: document.querySelectorAll('.chat .turn').length};
}"""


def run() -> list[Row]:
    """Open, scroll and look back."""
    if shutil.which("chromium") is None or not (PAGE / "index.html").exists():
        print("no chromium, or the page is not built (make web): left out", file=sys.stderr)
        return []
    return run_async(_measure)


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        (base / "project").mkdir()
        await _write(base)
        async with page_world([["x"]], base) as world:
            return await _opened(await world.opened())


async def _write(base: Path) -> None:
    folder = base / ".local" / "share" / "weft"
    folder.mkdir(parents=True)
    store = await open_sqlite(folder / "weft.db")
    await write_facts(store, SESSION, stamped(SESSION, _facts(base)))
    # As its own process leaves it: it keeps one every now and then, and when it ends.
    await keep_snapshot(await load_state(SESSION, store), store)
    await store.aclose()


def _facts(base: Path) -> Any:
    yield SessionCreated(project_path=str(base / "project"), model="scripted:m", title="Long work")
    parent: NodeId | None = None
    for turn in range(1, MESSAGES // 2 + 1):
        made: list[Fact] = list(answered_turn(turn, parent))
        yield from made
        parent = NodeId(f"nod_{turn:020}_a")


async def _opened(page: Any) -> list[Row]:
    await page.locator(".session-row").wait_for()
    before, started = ProcessTimes.of_children(), time.perf_counter()
    await page.locator(".session-row .open").click()
    await page.locator(".chat .turn").first.wait_for()
    first = (time.perf_counter() - started) * 1000
    opening = ProcessTimes.of_children().since(before)
    await page.locator(".track .ring-here").wait_for(timeout=60_000)
    with_thread = (time.perf_counter() - started) * 1000
    on_open = await page.evaluate("Math.max(0, ...tasks)")
    before = ProcessTimes.of_children()
    found = await page.evaluate(FRAMES % SCROLLS)
    scrolling = ProcessTimes.of_children().since(before)
    times = sorted(found["times"])
    started = time.perf_counter()
    await page.locator(".track").press("Home")
    await page.locator(".turn.looked").wait_for()
    looked = (time.perf_counter() - started) * 1000
    heap = await page.evaluate("performance.memory.usedJSHeapSize / 1e6")
    return [
        Row(f"page, {MESSAGES:,} messages, opened", first, "ms", limit=1_000),
        Row("the same, processor time of the server", 1000 * opening["server"], "ms"),
        Row("the same, processor time of the page", 1000 * opening["main"], "ms"),
        Row("page, its thread drawn", with_thread, "ms"),
        Row("longest task while it opens", on_open, "ms"),
        Row("frame while scrolling, p95", times[int(len(times) * 0.95)], "ms", limit=33),
        Row("the same, processor time, mean", 1000 * scrolling["main"] / SCROLLS, "ms"),
        Row("longest task while scrolling", found["longest"], "ms", limit=50),
        Row("messages in the document, at most", found["most"], "", limit=60),
        Row("looked at its first turn", looked, "ms"),
        Row("memory of the page", heap, "MB", limit=80),
    ]
