"""Numbers of a server as Prometheus reads them: requests, readers, sessions, the process."""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from weft.version import __version__

if TYPE_CHECKING:  # it imports the operations
    from weft.server.server_parts import ServerParts

MEDIA_TYPE: Final = "text/plain; version=0.0.4"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


async def metrics_text(parts: ServerParts) -> str:
    """All numbers, as Prometheus reads them."""
    sessions: Counter[str] = Counter()
    for app in parts.projects.apps:
        sessions.update(info.status for info in await app.sessions.list_active())
    relays = parts.relays
    process = resource.getrusage(resource.RUSAGE_SELF)
    meter = parts.meter
    requests = {
        f'operation="{name}",status="{status}"': count
        for (name, status), count in sorted(meter.requests.items())
    }
    seconds = {f'operation="{name}"': total for name, total in sorted(meter.seconds.items())}
    found = [
        *_metric("weft_build_info", "gauge", "The version.", {f'version="{__version__}"': 1}),
        *_metric("weft_sessions", "gauge", "Sessions that run, by status.", _by_status(sessions)),
        *_metric("weft_projects", "gauge", "Projects that are open.", len(parts.projects.apps)),
        *_metric("weft_event_readers", "gauge", "Readers of events.", relays.reader_count),
        *_metric("weft_events_relayed_total", "counter", "Events, once each.", relays.relayed),
        *_metric("weft_readers_lost_total", "counter", "Readers too slow.", relays.lost),
        *_metric("weft_http_requests_total", "counter", "Requests answered.", requests),
        *_metric("weft_http_request_seconds_total", "counter", "Time to the answer.", seconds),
        *_metric("process_start_time_seconds", "gauge", "When it started.", meter.started),
        *_metric(
            "process_cpu_seconds_total",
            "counter",
            "Processor time.",
            process.ru_utime + process.ru_stime,
        ),
        *_metric("process_resident_memory_bytes", "gauge", "Memory in use.", _resident()),
    ]
    return "\n".join(found) + "\n"


def _by_status(sessions: Mapping[str, int]) -> dict[str, int]:
    return {f'status="{status}"': count for status, count in sorted(sessions.items())}


def _metric(name: str, kind: str, about: str, values: Mapping[str, float] | float) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    if isinstance(values, Mapping):
        yield from (f"{name}{{{labels}}} {value:.10g}" for labels, value in values.items())
    else:
        yield f"{name} {values:.10g}"


def _resident() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:  # not on Linux: the most that it was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
