"""Whole installs through the allowed hosts of a rule: `pip install`, `npm ci`, `cargo build`, each
from a registry on loopback, and none from another host."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pwd
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.allowed_hosts import file_server, judge
from tests.support.sandboxed_project import sandboxed_project

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(120)]

INIT = b"WORD = 'installed'\n"


def tarred(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
    return made.getvalue()


def skip_without(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")


async def installed(
    base: Path, port: int, files: Mapping[str, str], line: str
) -> list[tuple[int, str]]:
    """What a line prints with a registry that a rule allows, and with one that none does."""
    found = []
    for host in (f"localhost:{port}", "other.example"):
        folder = base / host.partition(":")[0]
        folder.mkdir()
        rules = judge(f"allow localhost:{port}")
        async with sandboxed_project(folder, egress=lambda command, rules=rules: rules) as there:
            for name, text in files.items():
                there.write(name, text.replace("HOST", host))
            result = await there.shell(line.replace("HOST", host), timeout_seconds=90)
            found.append((result.exit_code, result.output + "\n".join(result.remarks)))
    return found


def assert_only_from_the_allowed(found: list[tuple[int, str]], printed: str) -> None:
    (good, said), (bad, told) = found
    assert (good, printed in said) == (0, True), said
    assert bad != 0, told
    assert "fetch(domain:other.example)" in told


async def test_pip_installs_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "served" / "simple" / "thing"
    folder.mkdir(parents=True)
    wheel = "thing-1.0-py3-none-any.whl"
    about = "thing-1.0.dist-info"
    with zipfile.ZipFile(folder / wheel, "w") as made:
        made.writestr("thing.py", INIT)
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        made.writestr(f"{about}/WHEEL", tag)
        made.writestr(f"{about}/RECORD", f"thing.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n")
    (folder / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    options = "--isolated --trusted-host other.example --retries 0 -q --target lib"
    line = (
        f"{sys.executable} -m pip install {options} --index-url http://HOST/simple thing && "
        "PYTHONPATH=lib python3 -c 'import thing; print(thing.WORD)'"
    )
    with file_server(tmp_path / "served") as port:
        found = await installed(tmp_path, port, {}, line)
    assert_only_from_the_allowed(found, "installed")


async def test_npm_installs_what_a_lock_file_names(tmp_path: Path) -> None:
    skip_without("npm")
    package = '{"name": "thing", "version": "1.0.0", "main": "index.js"}'
    archive = tarred(
        {"package/package.json": package, "package/index.js": "module.exports = 'installed'"}
    )
    served = tmp_path / "served"
    served.mkdir()
    (served / "thing.tgz").write_bytes(archive)
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    locked = {
        "version": "1.0.0",
        "resolved": "http://HOST/thing.tgz",
        "integrity": f"sha512-{digest}",
    }
    wanted = {"name": "mine", "version": "1.0.0", "dependencies": {"thing": "1.0.0"}}
    lock = {
        "name": "mine",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {"": wanted, "node_modules/thing": locked},
    }
    files = {"package.json": json.dumps(wanted), "package-lock.json": json.dumps(lock)}
    line = (
        "npm ci --no-audit --no-fund --fetch-retries=0 --cache /tmp/npm --registry http://HOST/ && "
        "node -p \"require('thing')\""
    )
    with file_server(served) as port:
        found = await installed(tmp_path, port, files, line)
    assert_only_from_the_allowed(found, "installed")


async def test_cargo_builds_with_a_crate_of_a_registry(tmp_path: Path) -> None:
    skip_without("cargo")
    about = '[package]\nname = "thing"\nversion = "1.0.0"\nedition = "2021"\n'
    source = 'pub fn word() -> &\'static str { "installed" }\n'
    crate = tarred({"thing-1.0.0/Cargo.toml": about, "thing-1.0.0/src/lib.rs": source})
    served = tmp_path / "served"
    (served / "th/in").mkdir(parents=True)
    (served / "thing-1.0.0.crate").write_bytes(crate)
    digest = hashlib.sha256(crate).hexdigest()
    row = {"name": "thing", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}}
    (served / "th/in/thing").write_text(json.dumps({**row, "yanked": False}) + "\n")
    files = {
        "Cargo.toml": '[package]\nname = "mine"\nversion = "1.0.0"\nedition = "2021"\n'
        '[dependencies]\nthing = { version = "1", registry = "here" }\n',
        "src/main.rs": 'fn main() { println!("{}", thing::word()); }\n',
    }
    line = (
        f"export HOME={pwd.getpwuid(os.getuid()).pw_dir} "  # where rustup has its toolchains
        "CARGO_HOME=/tmp/cargo CARGO_REGISTRIES_HERE_INDEX=sparse+http://HOST/ "
        "CARGO_NET_RETRY=0; cargo build -q && target/debug/mine"
    )
    with file_server(served) as port:
        template = f"http://localhost:{port}/{{crate}}-{{version}}.crate"
        (served / "config.json").write_text(json.dumps({"dl": template}))
        found = await installed(tmp_path, port, files, line)
    assert_only_from_the_allowed(found, "installed")
