"""The plug is pulled inside a command: what is left, of Weft and of other agents.

    python -m scripts.demos.plug [--svg FILE] [--agents FOLDER]

Each agent is asked by a scripted model to run one command, which writes half a file and leaves a
process of its own behind.  Then the agent is killed (`kill -9`), and a second later the folder is
looked at.  Other agents are those on the PATH, and below the npm prefix that `--agents` or
`WEFT_DEMO_AGENTS` names.  It takes under a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from scripts.demos.demo_screen import AMBER, BOLD, COLUMNS, DIM, GREEN, PLAIN, RED, DemoScreen
from scripts.demos.other_agents import AGENTS, AgentCommand
from scripts.demos.scripted_vendor import scripted_vendor

START_SECONDS: Final = 20.0
"""How long an agent may take to run the command."""
AFTER_SECONDS: Final = 1.0
"""How long after the kill the folder is looked at."""
LOOK_SECONDS: Final = 0.5


class AfterKill(NamedTuple):
    """What a killed agent left."""

    name: str
    running: int
    """Processes of the command."""
    writes: bool
    """They go on writing."""
    report: str
    """What the file holds that the command was writing; empty where there is none."""
    says: tuple[str, ...] = ()
    """What the agent tells of it afterwards."""


def command_of(token: str) -> str:
    """Half a file, a process in a session of its own without an environment, and a long wait."""
    writer = "while :; do echo on >> orphan.log; sleep 0.05; done"
    return (
        f"printf 'half of ' > report.txt; env -i PATH=$PATH setsid sh -c '{writer}' {token} & "
        f"sh -c 'sleep 600; true' {token}; printf 'a report' >> report.txt"
    )


def bearing(token: str) -> list[int]:
    """The processes of a command, by a word of their command lines."""
    return [pid for pid, words in _command_lines() if token.encode() in words]


def _command_lines() -> list[tuple[int, list[bytes]]]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            found.append((int(name), Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")))
    return found


def pull(name: str, argv: Sequence[str], environ: dict[str, str], folder: Path) -> AfterKill | str:
    """Start an agent, kill it inside the command, and look; or why it did not come to that."""
    token = f"plug-demo-{os.getpid()}-{name.replace(' ', '-')}"
    log = folder.parent / "output"
    with log.open("wb") as output:
        agent = subprocess.Popen(
            argv, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        if not _within(START_SECONDS, lambda: len(bearing(token)) >= 2):
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            return f"it did not run the command: {''.join(last)[:60]}"
        _within(1.0, lambda: (folder / "orphan.log").exists())
        for pid in _agent_processes(agent.pid, token):
            with suppress(OSError):
                os.kill(pid, 9)
        agent.wait()
        time.sleep(AFTER_SECONDS)
        return _looked(name, token, folder)
    finally:
        agent.kill()
        agent.wait()
        for pid in bearing(token):
            with suppress(OSError):
                os.kill(pid, 9)


def _looked(name: str, token: str, folder: Path) -> AfterKill:
    def size() -> int:
        file = folder / "orphan.log"
        return file.stat().st_size if file.exists() else 0

    before = size()
    time.sleep(LOOK_SECONDS)
    report = folder / "report.txt"
    text = report.read_text() if report.exists() else ""
    return AfterKill(name, len(bearing(token)), size() > before, text)


def _agent_processes(first: int, token: str) -> list[int]:
    """An agent's own processes: wrappers and helpers, and nothing that the command started."""
    lines = dict(_command_lines())
    found = [first]
    for pid in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                listed = Path(f"/proc/{pid}/task/{task}/children").read_text().split()
                found += [each for each in map(int, listed) if not _is_of(lines.get(each), token)]
    return found


def _is_of(words: list[bytes] | None, token: str) -> bool:
    """Whether it is a process of the command, or Weft's keeper, which a kill of Weft leaves to do
    its work."""
    line = b" ".join(words or [])
    return token.encode() in line or b"keeper_program" in line


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# -- the agents


def weft(root: Path, name: str, settings: dict[str, str]) -> AfterKill | str:
    """Weft itself, by its command line."""
    token = f"plug-demo-{os.getpid()}-{name.replace(' ', '-')}"
    home, folder = root / "home", root / "project"
    home.mkdir(parents=True)
    folder.mkdir()
    script = home / "script.json"
    call = {"do": "call", "name": "shell", "args": {"command": command_of(token)}}
    script.write_text(
        json.dumps({"by": "content", "answers": [[call], "The command was cut off."]})
    )
    (home / ".config" / "weft").mkdir(parents=True)
    lines = [f'{key} = "{value}"\n' for key, value in settings.items()]
    (home / ".config" / "weft" / "config.toml").write_text("".join(lines))
    environ = {**_plain(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-m", "weft"]
    asked = [*program, "-p", "--yolo", "-m", f"scripted:{script}", "write the report"]
    found = pull(name, asked, environ, folder)
    if isinstance(found, str):
        return found

    def ran(*words: str) -> str:
        done = subprocess.run(
            [*program, *words], cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
        return done.stdout

    differs = json.loads(ran("session", "differences", "--json"))
    named = ", ".join(f"{each['path']} {each['kind']} ({each['by']})" for each in differs)
    ran("-p", "-c", "--yolo", "go on")
    shown = ran("session", "show", "--json", json.loads(ran("session", "list", "--json"))[0]["id"])
    messages = json.loads(shown)["messages"]
    [result] = [each["content"] for each in messages if each["role"] == "tool"]
    return found._replace(
        says=(
            f"$ weft session differences: {named or 'none'}",
            *textwrap.wrap(f"the model is told: {result.strip().splitlines()[0]}", COLUMNS - 6),
        )
    )


def other(root: Path, agent: AgentCommand, program: str) -> AfterKill | str:
    """Another agent, on a scripted vendor."""
    token = f"plug-demo-{os.getpid()}-{agent.name}"
    home, folder = root / "home", root / "project"
    home.mkdir(parents=True)
    folder.mkdir()
    with scripted_vendor(command_of(token)) as vendor:
        for path, text in agent.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("ADDRESS", vendor.address))
        added = {key: value.replace("ADDRESS", vendor.address) for key, value in agent.env.items()}
        words = [word.replace("ADDRESS", vendor.address) for word in agent.words]
        return pull(agent.name, [program, *words], {**_plain(home), **added}, folder)


def _plain(home: Path) -> dict[str, str]:
    """An environment without keys and settings."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "dumb"}


def found_agents(prefix: str) -> list[tuple[AgentCommand, str]]:
    """The other agents that are installed."""
    path = os.pathsep.join([f"{prefix}/node_modules/.bin", f"{prefix}/bin", os.environ["PATH"]])
    located = [(agent, shutil.which(agent.name, path=path)) for agent in AGENTS]
    return [(agent, program) for agent, program in located if program is not None]


# -- the screen


def show(screen: DemoScreen, found: AfterKill) -> None:
    """One agent's line, and what it tells."""
    if found.running:
        state = f"{RED}{found.running} of its processes run on"
        state += " and write" if found.writes else ""
    else:
        state = f"{GREEN}nothing runs on"
    left = f"{AMBER}half a file is left" if found.report else f"{GREEN}the folder is untouched"
    screen.show(f"  {BOLD}{found.name:18}{PLAIN} {state}{PLAIN}; {left}{PLAIN}")
    for line in found.says:
        screen.show(f"    {DIM}{line}{PLAIN}")


def main(argv: Sequence[str]) -> int:
    """Show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", default="")
    parser.add_argument("--agents", default=os.environ.get("WEFT_DEMO_AGENTS", ""))
    chosen = parser.parse_args(argv)
    screen = DemoScreen()
    screen.show(f"{BOLD}Kill -9 inside a command{PLAIN}")
    screen.show(f"{DIM}It writes half a file, and leaves a process: setsid, no environment.{PLAIN}")
    screen.show()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        root = Path(name)
        ways = {"weft": {}, "weft, no sandbox": {"sandbox.mode": "off"}}
        for number, (title, settings) in enumerate(ways.items()):
            found = weft(root / str(number), title, settings)
            wrong += isinstance(found, str) or bool(found.running)
            _show_or_say(screen, title, found)
        others = found_agents(chosen.agents)
        for agent, program in others:
            _show_or_say(screen, agent.name, other(root / agent.name, agent, program))
    if not others:
        screen.show()
        names = ", ".join(agent.name for agent in AGENTS)
        screen.show(f"{DIM}No other agent is installed here ({names}).{PLAIN}")
    screen.save(chosen.svg, "A kill inside a command: what is left, of Weft and of other agents")
    return int(bool(wrong))


def _show_or_say(screen: DemoScreen, name: str, found: AfterKill | str) -> None:
    if isinstance(found, str):
        screen.show(f"  {BOLD}{name:18}{PLAIN} {DIM}{found}{PLAIN}")
    else:
        show(screen, found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
