"""What may be loaded on the way: start-up time is made of imports.

Only what is named here may be loaded for `--help` and on the way to the first request.  Something
new on these paths is a decision, not an
accident: measure it, then add it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.git_history import git
from tests.support.source_code import SRC
from tests.support.weft_program import WeftProgram
from weft.cli.entry_point import begins_chat

NEVER = {
    "argparse",
    "click",
    "difflib",
    "email",
    "http",
    "jsonschema",
    "markdown_it",
    "prompt_toolkit",
    "pygments",
    "rich",
    "starlette",
    "tomllib",
    "unittest",
    "urllib.request",
    "uvicorn",
    "wcwidth",
    "websockets",
    "weft.server",
    "yaml",
}
"""What costs tens of milliseconds or is not needed to send a request."""

HELP = {
    "weft",
    "weft.deferred_modules",
    "weft.version",
    "weft.errors",
    "weft.thinking_levels",
    "weft.cli",
    "weft.cli.command_line",
    "weft.cli.command_spec",
    "weft.cli.entry_point",
    "weft.cli.exit_codes",
    "weft.cli.gc",
    "weft.cli.options",
    "weft.cli.parse",
    "weft.cli.help",
}
"""Of ours, all that `--help` may load."""

CLI_ON_THE_WAY = {
    *(HELP - {"weft.cli.help"}),
    "weft.cli.headless",
    "weft.cli.headless.answers",
    "weft.cli.headless.run",
    "weft.cli.session_options",
    "weft.cli.logs",
    "weft.cli.stdio",
    "weft.cli.prompt_input",
    "weft.cli.headless.output_formats",
    "weft.cli.headless.own_turn",
    "weft.cli.signals",
    "weft.cli.headless.turn_driver",
}
"""Of the command line, all that a run may load before its first request."""

RARE = {
    "_hashlib",
    "_ssl",
    "anyio.streams.tls",
    "random",
    "secrets",
    "unicodedata",
    "weft.api.pages",
    "weft.config.documents",
    "weft.context.compaction",
    "weft.loop.budget",
    "weft.loop.structured_output",
    "weft.project.agent_list",
    "weft.project.frontmatter",
    "weft.project.memory",
    "weft.runtime.workspaces.violation_report",
    "weft.session.decide.boundaries",
    "weft.session.decide.branches",
    "weft.permissions.domains",
    "weft.session.decide.line",
    "weft.session.decide.queue",
    "weft.session.decide.records",
    "weft.session.decide.requests",
    "weft.session.decide.settings",
    "weft.session.log.load",
    "weft.session.log.stored_line",
    "weft.store.sqlite.delete",
    "weft.store.sqlite.lock_holder",
    "weft.store.text",
    "weft.tools.output_schema",
    "weft.tools.pictures",
    "weft.tools.submit",
    "weft.view.blocks",
    "weft.workspace.writes.atomic_write",
    "weft.workspace.boundaries.lines",
}
"""What a run with one short answer has no use for.  A module takes about three times the
size of its bytecode in memory for as long as the process lives.
"""
RARE_OF_A_VENDOR = {
    "random",
    "weft.providers.documents",
    "weft.providers.error_advice",
    "weft.providers.openai.encode",
    "weft.providers.openai_chat.model_list",
    "zlib",
}
"""What a vendor that answers in words has no use for."""

RARE_OF_A_READ = {"weft.tools.notebook", "weft.tools.pdf", "weft.tools.pictures"}
"""What a tool that reads text has no use for."""

DUMP = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
sys.argv = ["weft", *sys.argv[1:]]
from weft.deferred_modules import defer_modules
defer_modules()  # as the program itself does
from weft.cli import main
sys.exit(main())
"""


def loaded_by(weft: WeftProgram, *arguments: str, **env: str) -> set[str]:
    """Every module that is loaded when the program ends."""
    done = subprocess.run(
        [sys.executable, "-c", DUMP, *arguments],
        env={**weft.environment, **env},
        cwd=weft.project,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert done.stdout
    return set(json.loads(done.stderr))


def bare() -> set[str]:
    """What the interpreter loads by itself, here."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, json; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def roots(modules: set[str]) -> set[str]:
    return {
        name
        for name in NEVER
        if any(each == name or each.startswith(f"{name}.") for each in modules)
    }


PROMPT = """
import os, sys
before = set(sys.modules)
import weft.cli.entry_point
import weft.cli.early_prompt
print(*sorted(set(sys.modules) - before))
"""


def test_the_early_prompt_loads_nothing_that_the_interpreter_has_not(weft: WeftProgram) -> None:
    done = subprocess.run(
        # Without `site`, which may load anything.
        [sys.executable, "-S", "-c", PROMPT],
        env=weft.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) <= {
        *("__future__", "select", "termios"),
        *("weft", "weft.cli", "weft.cli.entry_point", "weft.cli.early_prompt", "weft.version"),
        "weft.cli.git_branch",
    }


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ([], True),
        (["-c"], True),
        (["-m", "sonnet"], True),
        (["--model", "sonnet", "--continue"], True),
        (["-m"], False),
        (["-m", "-p"], False),
        (["-p"], False),
        (["--help"], False),
        (["models"], False),
        (["hello"], False),
        (["-C", "elsewhere"], False),
    ],
)
def test_only_words_that_are_sure_to_begin_a_chat_get_the_prompt_before_they_are_parsed(
    words: list[str], begins: bool
) -> None:
    assert begins_chat(words) == begins


def test_help_loads_next_to_nothing(weft: WeftProgram) -> None:
    loaded = loaded_by(weft, "--help")
    assert {name for name in loaded if name.startswith("weft")} <= HELP
    assert not roots(loaded - bare())
    assert not {
        "asyncio",
        "anyio",
        "msgspec",
        "apsw",
        "logging",
        "dataclasses",
        "inspect",
        "json.decoder",
    } & (loaded - bare() - {"json.decoder", "json", "json.encoder", "json.scanner"})


def test_the_way_to_the_first_request_loads_only_what_it_needs(weft: WeftProgram) -> None:
    """The dump is taken at the end of a run with one short answer, so it holds all that came before
    the request.
    """
    loaded = loaded_by(weft, "-p", "-m", weft.script("Hello."), "hi")
    of_the_cli = {name for name in loaded if name.startswith("weft.cli")} | {"weft", "weft.errors"}
    assert of_the_cli <= CLI_ON_THE_WAY
    assert RARE & loaded == set()
    assert not roots(loaded - bare())


def test_commands_are_not_parsed_where_no_word_of_them_could_change_what_is_decided(
    weft: WeftProgram,
) -> None:
    """The grammar takes longer to load than a short command to run."""
    model = weft.script(
        [{"do": "call", "name": "shell", "args": {"command": "echo $((1+1))"}}], "Two."
    )
    bypass = ("-p", "--permission-mode", "bypass", "-m", model)
    judge = {"weft.permissions.shell", "tree_sitter._binding"}
    assert judge & loaded_by(weft, *bypass, "hi") == set()
    assert judge <= loaded_by(weft, *bypass, "--disallowed-tools", "shell(rm *)", "hi")
    assert judge <= loaded_by(weft, "-p", "--permission-mode", "auto", "-m", model, "hi")


def test_a_project_without_code_loads_nothing_of_the_index(weft: WeftProgram) -> None:
    """And starts no process: the index is on, but there is nothing to be read."""
    for number in range(20):
        (weft.project / f"text{number}.txt").write_text("words\n")
    (weft.project / "README.md").write_text("# Words\n")
    git(weft.project, "init", "-q")
    git(weft.project, "add", "-A")
    script = weft.script("Hello.")
    loaded_by(weft, "-p", "-m", script, "hi")  # the first one finds out what the folder is
    without = loaded_by(weft, "-p", "-m", script, "hi")
    loaded = loaded_by(weft, "-p", "-m", script, "hi", WEFT_REPO_INDEX="on")
    assert loaded == without
    assert not any(name.startswith("weft.repo") for name in loaded)
    assert not (weft.data / "index").exists()


def test_a_map_of_an_unchanged_project_loads_no_event_loop(weft: WeftProgram) -> None:
    """The loop takes as long to load as the map takes; only an indexer has to be waited for."""
    (weft.project / "cart.py").write_text("def total(items): ...\n")
    # The first one has the index made.
    assert "asyncio" in loaded_by(weft, "map", WEFT_REPO_INDEX="on")
    loaded = loaded_by(weft, "map", "--request", "the total", WEFT_REPO_INDEX="on")
    assert "weft.repo.project_index" in loaded
    assert not {"asyncio", "concurrent.futures", "_ssl", "subprocess"} & loaded
    assert not roots(loaded - bare())


def test_an_edit_loads_nothing_of_language_servers_where_there_is_none(weft: WeftProgram) -> None:
    edit = {"do": "call", "name": "write", "args": {"path": "a.py", "content": "x = 1\n"}}
    words = (
        "-p",
        "--permission-mode",
        "accept_edits",
        "-m",
        weft.script([edit], "Done."),
        "write it",
    )
    loaded = loaded_by(weft, *words, PATH="/nowhere")
    assert (weft.project / "a.py").exists()
    assert "weft.tools.builtin.write" in loaded
    servers = ("weft.lsp", "weft.jsonrpc", "weft.runtime.workspaces.language")
    assert not {name for name in loaded if name.startswith(servers)}
    assert "weft.workspace.process.piped" not in loaded


THREADS = """
import threading
start = threading.Thread.start
names = []
threading.Thread.start = lambda self: (names.append(self.name), start(self))[1]
""" + DUMP.replace("sorted(sys.modules)", "[sorted(sys.modules), names]")


def test_a_project_without_decisions_loads_nothing_of_them_and_asks_no_reader(
    weft: WeftProgram,
) -> None:
    """Every run has to find out that there are none."""
    script = weft.script([{"do": "call", "name": "read", "args": {"path": "a.txt"}}], "Done.")
    (weft.project / "a.txt").write_text("words\n")
    done = subprocess.run(
        [sys.executable, "-c", THREADS, "-p", "-m", script, "read a.txt"],
        env=weft.environment,
        cwd=weft.project,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    loaded, threads = json.loads(done.stderr)
    assert "weft-writer" in threads
    assert "weft-reader" not in threads
    assert not [name for name in loaded if "decision" in name]


CHAT_COMMANDS = ", ".join(
    ".".join(("weft", *file.relative_to(SRC).with_suffix("").parts))
    for file in sorted((SRC / "cli" / "chat" / "commands").rglob("[a-z]*_commands.py"))
)
"""All of them are loaded with the first slash command of a chat."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("modules", "rare"),
    [
        ("weft.providers.openai_chat.stream, weft.transport.client", RARE_OF_A_VENDOR),
        ("weft.tools.builtin.read", RARE_OF_A_READ),
        (CHAT_COMMANDS, {"asyncpg", "click", "http.client", "starlette", "uvicorn", "websockets"}),
    ],
    ids=["vendor", "read", "slash command"],
)
def test_what_only_few_need_is_not_loaded_with_the_rest(modules: str, rare: set[str]) -> None:
    script = f"import json, sys; import {modules}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert set(modules.split(", ")) <= loaded
    assert not rare & loaded


def test_the_test_sees_what_is_loaded(weft: WeftProgram) -> None:
    loaded = loaded_by(weft, "-p", "-m", weft.script("Hello."), "--output-format", "json", "hi")
    assert "weft.protocol.stream_json" in loaded
    assert "asyncio" in loaded
