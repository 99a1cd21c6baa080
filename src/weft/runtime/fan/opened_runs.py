"""Fan-outs that are taken up: the one at work here, or the one that another process left."""

from __future__ import annotations

from weft.runtime.fan.fan_host import FanHost
from weft.runtime.fan.fan_index import FanEntry
from weft.runtime.fan.fan_run import FanRun, new_run
from weft.runtime.fan.kept_candidate import recover_keeps
from weft.runtime.fan.stored_fans import read_fan


async def open_run(host: FanHost, entry: FanEntry) -> FanRun:
    """A fan-out, at work here or stored; a keep of it that was cut off is finished.

    Raises:
        UsageError: its session knows nothing of it, or is open in another process.
    """
    if entry.fan_id in host.fan_runs:
        known: FanRun = host.fan_runs[entry.fan_id]
        return known
    record = await read_fan(host, entry)
    run = await new_run(host, entry.session_id)
    await run.come_back(record)
    host.fan_runs[record.fan_id] = run
    await recover_keeps(host, entry.session_id, record)
    return run
