"""Bad input: one clear sentence, the right exit code, no traceback, nothing left behind."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.weft_program import WeftProgram, text


def refused(weft: WeftProgram, *arguments: str, stdin: bytes = b"", **env: str) -> tuple[int, str]:
    """Exit code and the one sentence; whatever else it says is an error of the test."""
    done = weft.call(*arguments, stdin=stdin, env=env)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    first, *more = done.stderr.splitlines()
    assert first.startswith("weft: ")
    assert more == []
    return done.returncode, first.removeprefix("weft: ")


class BadInput(NamedTuple):
    """What is wrong, and what is said of it."""

    arguments: list[str]
    told: str
    code: int = 2
    stdin: bytes = b""
    env: dict[str, str] = {}
    files: dict[str, bytes] = {}
    """Files of the project."""
    config: dict[str, bytes] = {}
    """Files of the user's settings."""

    @property
    def name(self) -> str:
        """Readable, and different for each."""
        parts: list[object] = [*self.env.items(), *self.config.values(), *self.files.values()]
        given = [str(each) for each in parts] + ([str(self.stdin)] if self.stdin else [])
        return f"{shlex.join(self.arguments)} {' '.join(given)}".strip()[:120]


def settings(content: str | bytes, told: str) -> BadInput:
    data = content if isinstance(content, bytes) else content.encode()
    return BadInput(["-p", "hi"], told, config={"config.toml": data})


def hooks(content: bytes, told: str) -> BadInput:
    return BadInput(["-p", "hi"], told, config={"hooks.json": content})


def variable(name: str, value: str, told: str) -> BadInput:
    return BadInput(["-p", "hi"], told, env={name: value})


def address(name: str, value: str, provider: str) -> BadInput:
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    told = f"{name} is not right: {value!r} is not a valid address; it should look like https://"
    return BadInput(
        ["-p", "-m", f"{provider}:x", "hi"],
        told,
        env={**keys, "AZURE_OPENAI_API_KEY": "k", name: value},
    )


def proxy(name: str, value: str, told: str = "the address of a proxy looks like") -> BadInput:
    variables = {"OPENAI_API_KEY": "k", name: value}
    return BadInput(
        ["-p", "-m", "openai:x", "hi"], f"{name} is not right: {told}", 1, env=variables
    )


def file(name: str, content: bytes, arguments: list[str], told: str) -> BadInput:
    return BadInput(arguments, told, files={name: content})


def piped(content: bytes, told: str) -> BadInput:
    return BadInput(["-p"], told, stdin=content)


def line(content: bytes, told: str) -> BadInput:
    formats = ["--input-format", "stream-json", "--output-format", "stream-json"]
    return BadInput(["-p", *formats], told, stdin=content)


COMMAND_LINES = [
    BadInput(["-p", "-m", "nope:x", "hi"], "no provider 'nope'"),
    BadInput(["-p", "-m", "nonsense", "hi"], "write provider:model"),
    BadInput(["-p", "-m", "antropic:x", "hi"], "did you mean 'anthropic'?"),
    BadInput(["-p", "-m", "", "hi"], "unknown model ''"),
    BadInput(["-p", "-m", ":x", "hi"], "unknown model ':x'"),
    BadInput(["-p", "-m", "anthropic:", "hi"], "did you mean 'anthropic'?"),
    BadInput(["-p", "-m", "sonnet:wild", "hi"], "no thinking level 'wild'"),
    BadInput(["-p", "-m", "local:nope", "hi"], "no local model 'nope'; there are smollm2"),
    BadInput(["-p", "-m", "anthropic:claude-sonnet-5-5", "hi"], "there is no key for anthropic", 3),
    BadInput(["-p", "-m", "scripted:/nowhere.json", "hi"], "cannot read the script"),
    BadInput(["-p", "-m", "scripted:.", "hi"], "cannot read the script"),
    BadInput(["-p", "-m", "replay:/nowhere", "hi"], "cannot read the recording"),
    BadInput(["-p", "hi", "-m"], "-m needs a value"),
    BadInput(["-p", "--modle", "x"], "did you mean '--model'?"),
    BadInput(["-p", "--no-such", "hi"], "'--no-such'; the nearest is '--json-schema'"),
    BadInput(["-p", "--out", "x"], "did you mean '--output-format' or '--output-last-message'?"),
    BadInput(["-P", "hi"], "there is no option '-P' (did you mean '-p'?)"),
    BadInput(["-p", "-x", "hi"], "there is no option '-x'"),
    BadInput(["-pz", "hi"], "there is no option '-pz'"),
    BadInput(["--bogus"], "there is no option '--bogus'; the nearest is '--bg'"),
    BadInput(["-p", "--print=1", "hi"], "--print takes no value"),
    BadInput(["-p", "--max-turns", "0", "hi"], "--max-turns needs a whole number above 0"),
    BadInput(["-p", "--max-turns", "many", "hi"], "--max-turns needs a whole number above 0"),
    BadInput(["-p", "--max-budget-usd", "-1", "hi"], "needs a number above 0, not '-1'"),
    BadInput(["-p", "--max-budget-usd", "nan", "hi"], "needs a number above 0, not 'nan'"),
    BadInput(
        ["-p", "--max-tokens", "9" * 26, "hi"], "needs a smaller number than 9999999999999999"
    ),
    BadInput(["-p", "--max-turns", "9" * 5000, "hi"], "--max-turns needs a smaller number than"),
    BadInput(["-p", "--max-budget-usd", "1e300", "hi"], "needs a smaller number than 1e300"),
    BadInput(["permissions", "add", "read"], "a rule stands behind allow, ask or deny: deny"),
    BadInput(["-p", "--max-tokens", "1.5", "hi"], "needs a whole number above 0, not '1.5'"),
    BadInput(["-p", "--effort", "wild", "hi"], "--effort needs one of default, off"),
    BadInput(["-p", "--permission-mode", "nope", "hi"], "--permission-mode needs one of"),
    BadInput(["-p", "--plan", "--yolo", "hi"], "contradict each other"),
    BadInput(["-p", "--allowedTools", "Bash(", "hi"], "the rule 'Bash(' cannot be taken"),
    BadInput(["-p", "--disallowedTools", "hammer", "hi"], "there is no tool 'hammer'"),
    BadInput(["-p", "--tools", "hammer", "hi"], "no tool 'hammer'; there are agent, "),
    BadInput(["-p", "--tools", "wirte", "hi"], "no tool 'wirte'; did you mean 'write'?"),
    BadInput(["-p", "--fallback-model", " , ", "hi"], "--fallback-model needs a value"),
    BadInput(["-p", "--modle", "x", "hi"], "(did you mean '--model'?); `weft --help` lists the"),
    BadInput(["-p", "--plan-model", "nope:x", "hi"], "no provider 'nope'"),
    BadInput(["-p", "--edit-model", "nope:x", "hi"], "no provider 'nope'"),
    BadInput(["-p", "--fallback-model", "nope:x", "hi"], "weft: model.fallback: no provider"),
    BadInput(["-p", "--profile", "nope", "hi"], "there is no profile 'nope'"),
    BadInput(["-p", "--dialect", "french", "hi"], "--dialect needs one of weft, claude"),
    BadInput(["-p", "--permission-prompt-tool", "x", "hi"], "needs one of stdio"),
    BadInput(["-p", "--set", "nonsense", "hi"], "KEY=VALUE"),
    BadInput(["-p", "--set", "=x", "hi"], "--set takes KEY=VALUE, not '=x'"),
    BadInput(["-p", "--set", "model.defualt=x", "hi"], "'model.default'"),
    BadInput(["-p", "--set", "theme=blue", "hi"], "it takes one of auto, dark, light, none"),
    BadInput(["-p", "--set", "providers=x", "hi"], "it takes tables by name, not 'x'"),
    BadInput(["-p", "--settings", "no.json", "hi"], "cannot read 'no.json': No such file"),
    BadInput(["-p", "--settings", "{", "hi"], "--settings is not valid JSON: "),
    BadInput(["-p", "--settings", "[1]", "hi"], "cannot read '[1]': No such file"),
    BadInput(["-p", "--settings", '{"them": "dark"}', "hi"], "did you mean 'theme'?"),
    BadInput(
        ["-p", "--settings", '{"theme": "pink"}', "hi"],
        "theme is not right: it takes one of auto, dark, light, none",
    ),
    file("s.toml", b"theme = ", ["-p", "--settings", "s.toml", "hi"], "s.toml is not valid TOML"),
    file("s.json", b"[1]", ["-p", "--settings", "s.json", "hi"], "s.json is not a JSON object"),
    BadInput(["-p", "--agent", "nope", "hi"], "there is no agent 'nope'; there are general"),
    BadInput(["-p", "--agent", "generl", "hi"], "no agent 'generl'; did you mean 'general'?"),
    BadInput(["-p", "--agent", "", "hi"], "--agent needs a value: --agent NAME"),
    BadInput(["-p", "--output-format", "yaml", "hi"], "needs one of text, json, stream-json"),
    BadInput(["-p", "--input-format", "stream-json"], "needs --output-format stream-json"),
    BadInput(["-p", "--system-prompt", "a", "--system-prompt-file", "b", "hi"], "not both"),
    BadInput(["-p", "-r", "ses_nope", "hi"], "there is no session 'ses_nope'"),
    BadInput(["-p", "-c", "hi"], "no session in this folder"),
    BadInput(["-p", "-c", "-r", "x", "hi"], "not both"),
    BadInput(["-p", "-r"], "no terminal to pick"),
    BadInput(["-p", "--fork", "hi"], "--fork needs a session"),
    BadInput(["-p", "--ephemeral", "-c", "hi"], "--ephemeral keeps no sessions"),
    BadInput(["-p", "--ephemeral", "-r", "x", "hi"], "--ephemeral keeps no sessions"),
    BadInput(["-p", "--session-id", "../x", "hi"], "cannot be a session id"),
    BadInput(["-p", "--session-id", "", "hi"], "--session-id needs a value: --session-id ID"),
    BadInput(["-p", "-c", "--session-id", "x", "hi"], "--session-id names a new session"),
    BadInput(["-p", "-r", "y", "--session-id", "x", "hi"], "--session-id names a new session"),
    BadInput(["-p", "--mcp-config", "no.json", "hi"], "cannot read 'no.json': No such file or"),
    BadInput(["-p", "--session-id", "a b", "hi"], "cannot be a session id"),
    BadInput(["-p", ""], "there is no prompt"),
    BadInput(["-p", "  \n"], "there is no prompt"),
    BadInput(["-p"], "there is no prompt"),
    BadInput(["-p", "-"], "there is no prompt"),
    BadInput(["sesion"], "did you mean 'session'?"),
    BadInput(["sesion", "list"], "`weft -- sesion` sends it as a prompt"),
    BadInput(["mpc", "list"], "did you mean 'mcp'?"),
    BadInput(["db", "path"], "`weft store path` names its file"),
    BadInput(["mcp", "add", "x", "ftp://host"], "by http:// or https://, not by 'ftp://host'"),
    BadInput(["-p", "hi", "-n", ""], "-n needs a value: -n TITLE"),
    BadInput(["start"], "`weft -- start` sends it as a prompt"),
    BadInput(["conifg"], "did you mean 'config'?"),
    BadInput(["session", "nope"], "there is no `session nope`; it has list, show"),
    BadInput(["session", "show"], "needs exactly one ID"),
    BadInput(["session", "show", "a", "b"], "needs exactly one ID"),
    BadInput(["session", "show", "ses_nope"], "there is no session 'ses_nope'"),
    BadInput(["session", "list", "--limit", "0"], "--limit needs a whole number above 0"),
    BadInput(["session", "rename", "ses_x"], "needs an id and a title"),
    BadInput(["session", "rename", "ses_x", "New"], "there is no session 'ses_x'"),
    BadInput(["session", "export", "ses_x"], "there is no session 'ses_x'"),
    BadInput(["session", "fork", "ses_x"], "there is no session 'ses_x'"),
    BadInput(["session", "tree", "ses_x"], "there is no session 'ses_x'"),
    BadInput(["session", "archive", "ses_x"], "there is no session 'ses_x'"),
    BadInput(["session", "delete", "ses_x"], "there is no session 'ses_x'"),
    BadInput(["session", "delete"], "at least one id"),
    BadInput(["session", "import"], "needs exactly one FILE"),
    BadInput(["models", "nope"], "there is no `models nope`; it has list, pull"),
    BadInput(["models", "pull", "nope"], "no model 'nope' to pull"),
    BadInput(["stats", "x"], "`weft stats` takes no 'x'"),
    BadInput(["stats", "--bogus"], "there is no option '--bogus'; `weft help stats` lists its"),
    BadInput(["decisions", "list", "--kind", "wish"], "no kind 'wish'; there are goal, decision"),
    BadInput(["update"], "no command 'update': `pip install --upgrade weft` updates it"),
    BadInput(["resume"], "`weft -r` picks one; `weft -- resume` sends it as a prompt"),
    BadInput(["store", "pth"], "did you mean 'path'?"),
    BadInput(["hlep"], "there is no command 'hlep' (did you mean 'help'?)"),
    BadInput(["serve", "--public"], "--public needs --host"),
    BadInput(["serve", "--host", "no host"], "'no host' can be reached from other machines"),
    BadInput(["doctor", "x"], "`weft doctor` takes no 'x'"),
    BadInput(["help", "nonsense"], "there is no command 'nonsense'"),
    BadInput(["completion"], "bash, zsh, fish"),
    BadInput(["completion", "tcsh"], "bash, zsh, fish"),
    BadInput(["auth", "nope"], "there is no `auth nope`"),
    BadInput(["auth", "login"], "a provider is missing: `weft auth login anthropic`"),
    BadInput(["auth", "login", "a/b"], "cannot be a provider's name"),
    BadInput(["auth", "login", "anthropic"], "no key was given"),
    BadInput(["auth", "login", "antropic"], "did you mean 'anthropic'?", stdin=b"k-123456\n"),
    BadInput(["auth", "login", "mine"], "[providers.mine] in", stdin=b"k-123456\n"),
    BadInput(
        ["auth", "login", "openai", "x"], "`weft auth login` takes one provider, not 'x' besides"
    ),
    BadInput(["-p", "--set", "theme=pink", "hi"], "weft: theme is not right: it takes one of auto"),
    BadInput(["auth", "logout"], "a provider is missing: `weft auth logout anthropic`"),
    BadInput(["auth", "logout", "anthropic"], "no key for 'anthropic' is saved"),
    BadInput(["config", "model.defualt"], "'model.default'"),
    BadInput(["config", "theme", "dark"], "`weft config set theme dark` sets it"),
    BadInput(["config", "list", "dark", "theme"], "there is no setting 'dark'"),
    BadInput(["config", "set", "theme"], "needs a setting and its value"),
    BadInput(["config", "set", "theme", "blue"], "it takes one of auto, dark, light, none"),
    BadInput(["config", "set", "permissions.allow", "3"], "there is no tool '3'"),
    BadInput(["config", "set", "permissions.deny", "edti"], "did you mean 'edit'?"),
    BadInput(["config", "unset", "theem"], "did you mean 'theme'?"),
    BadInput(["serve", "--port", "65536"], "--port needs a number up to 65535, not 65536"),
    BadInput(["config", "gt"], "did you mean 'get'?"),
    BadInput(["config", "theem"], "did you mean 'theme'?"),
    BadInput(["config", "get"], "takes the name of one setting"),
]
SLASH_COMMANDS = [
    BadInput(["-p", "/nope"], "there is no command /nope"),
    BadInput(["-p", "/modle x"], "did you mean /mode?"),
    BadInput(["-p", "/cost"], "/cost works in the chat only"),
    BadInput(["-p", "/HELP"], "/HELP works in the chat only"),
]
FILES = [
    BadInput(["-p", "-C", "/nowhere", "hi"], "it does not exist"),
    BadInput(["-p", "-C", "/etc/passwd", "hi"], "it is not a folder"),
    BadInput(["-p", "-C", "", "hi"], "-C needs a value: -C DIR"),
    BadInput(["-p", "--add-dir", "/nowhere", "hi"], "is not a folder"),
    BadInput(["-p", "--add-dir", "", "hi"], "--add-dir needs a value"),
    BadInput(["-p", "-o", "/nowhere/x.txt", "hi"], "there is no folder '/nowhere'"),
    BadInput(["-p", "-o", "/etc", "hi"], "it is a folder"),
    BadInput(["-p", "-o", "/proc/x.txt", "hi"], "cannot write the answer to '/proc/x.txt'"),
    BadInput(["-p", "-o", "", "hi"], "-o needs a value: -o FILE"),
    BadInput(["-p", "@missing.txt"], "there is no file 'missing.txt'"),
    BadInput(["-p", "@../x"], "there is no file '../x'"),
    BadInput(["-p", "@/etc/passwd hi"], "is outside the project"),
    file("notes.bin", b"\0\1", ["-p", "@notes.bin"], "is neither text nor an image"),
    BadInput(["-p", "-i", "missing.png", "hi"], "there is no file"),
    BadInput(["-p", "-i", ".", "hi"], "is a folder, not an image"),
    file("a.txt", b"hello", ["-p", "-i", "a.txt", "hi"], "is not an image that models take"),
    file("e.png", b"", ["-p", "-i", "e.png", "hi"], "is not an image that models take"),
    file("c.png", b"\x89PNG\r\n\x1a\n", ["-p", "-i", "c.png", "hi"], "is not an image"),
    BadInput(["-p", "--system-prompt-file", "/", "hi"], "cannot read '/': Is a directory"),
    BadInput(
        ["-p", "--append-system-prompt-file", "/nowhere", "hi"],
        "cannot read '/nowhere': No such file or directory",
    ),
    file("a.txt", b"\xff", ["-p", "--system-prompt-file", "a.txt", "hi"], "it is not UTF-8 text"),
    file("s.json", b"\xff", ["-p", "--json-schema", "s.json", "hi"], "it is not UTF-8 text"),
    BadInput(["serve", "--cert", "/nowhere", "--key", "/nowhere"], "the certificate cannot be"),
    BadInput(["serve", "--cert", "/nowhere"], "--cert and --key go together"),
    BadInput(["-p", "--json-schema", "{", "hi"], "not JSON"),
    BadInput(
        ["-p", "--json-schema", "/nowhere", "hi"],
        "cannot read the schema '/nowhere': No such file or directory",
    ),
    BadInput(["-p", "--json-schema", '{"type": "nope"}', "hi"], "is not a JSON Schema"),
    BadInput(["session", "import", "/nowhere"], "cannot read"),
    BadInput(["session", "import", "."], "cannot read '.'"),
    file("x.json", b"{}", ["session", "import", "x.json"], "is not a Weft export"),
    file("y.json", b"nonsense", ["session", "import", "y.json"], "is not a Weft export"),
    file("z.jsonl", b"\xff\xfe", ["session", "import", "z.jsonl"], "is not a Weft export"),
    file("e.json", b"", ["session", "import", "e.json"], "'e.json' is empty"),
    file("s.json", b"nope", ["-p", "-m", "scripted:s.json", "hi"], "s.json is not a script"),
    file("l.json", b"[]", ["-p", "-m", "scripted:l.json", "hi"], "l.json is not a script"),
]
SETTINGS = [
    settings("x = [", "is not valid TOML"),
    settings("a = 1\na = 2", "is not valid TOML"),
    settings(b"\xff", "is not UTF-8 text: line 1"),
    settings("a." * 40 + "b = 1", "is nested deeper than 32 levels"),
    settings(b"#" * 1_100_000, "it is larger than 1024 KB"),
    settings("[model]\ndefualt = 'x'", "line 2: there is no setting 'model.defualt'"),
    settings("model = 'x'", "there is no setting 'model'; did you mean 'model.default'?"),
    settings("[model]\nfallback = 'x'", "config.toml: model.fallback: unknown model 'x'"),
    settings("[model]\ndefault = ['x']", "it takes text, not ['x']"),
    settings("[session]\nmax_turns = 'many'", "line 2 is not right: it takes a whole number"),
    settings("session.idle_unload = 'x'", "it takes a number, not 'x'"),
    settings("theme = 'blue'", "line 1 is not right: it takes one of auto, dark, light, none"),
    settings("notify = 'perhaps'", "it takes true or false, not 'perhaps'"),
    settings("permissions.mode = 'nope'", "it takes one of default, plan"),
    settings("permissions.allow = ['Bash(']", "the rule 'Bash(' cannot be taken"),
    settings("[providers.x]\nprotocol = 'smoke'", "[providers.x] has no protocol 'smoke'"),
    settings("[providers.x]\nbogus = 1", "[providers.x] has no field 'bogus'"),
    settings("[providers.x]\nprotocol = 'chat'\nbase_url = 'x'", "should look like https://"),
    settings("[models.'x:y']\nwindow = 'big'", '[models."x:y"]: window'),
    settings("[models.x]\nwindow = 1", "should name provider:model"),
    settings("profile = 'nope'", "there is no profile 'nope'"),
    settings("[profiles.a]\nnope = 1", "there is no setting 'nope'"),
    settings("[[hooks.Nope]]\ncommand = 'x'", "there is no hook event 'Nope'"),
    settings("[hooks]\nStop = 'x'", "hooks in"),
    settings("[[hooks.Stop]]\ncommand = 3", "hooks.Stop is not right"),
    hooks(b"nope", "hooks.json is not valid JSON"),
    hooks(b"[]", "hooks.json is not a JSON object"),
    hooks(b'{"hooks": {"Stop": [{"hooks": [{"type": "smoke"}]}]}}', "hooks.Stop is not right"),
    BadInput(["auth", "list"], "are damaged; remove the file", config={"auth.json": b"nope"}),
]
ENVIRONMENT = [
    variable("WEFT_MODEL_DEFAULT", "nope:x", "no provider 'nope'"),
    variable("WEFT_MODEL_EFFORT", "wild", "model.effort in WEFT_MODEL_EFFORT is not right"),
    variable("WEFT_SESSION_MAX_TURNS", "0", "it takes a whole number of at least 1, not '0'"),
    variable("WEFT_SANDBOX_NETWORK", "maybe", "it takes true or false, not 'maybe'"),
    variable("WEFT_THEME", "blue", "theme in WEFT_THEME is not right"),
    variable("WEFT_PERMISSIONS_MODE", "nope", "it takes one of default, plan"),
    variable("WEFT_PERMISSIONS_ALLOW", "Bash(", "the rule 'Bash(' cannot be taken"),
    variable("WEFT_PROFILE", "nope", "there is no profile 'nope'"),
    variable("WEFT_PROVIDERS", "x", "it takes tables by name"),
    variable("WEFT_LOG", "LOUD", "WEFT_LOG takes one of debug, info, warning"),
    BadInput(
        ["-p", "-m", "anthropic:x", "hi"],
        "the key for anthropic from ANTHROPIC_API_KEY is not right",
        env={"ANTHROPIC_API_KEY": "sk-a\nb"},
    ),
    address("OPENAI_BASE_URL", "nonsense", "openai"),
    address("OPENAI_BASE_URL", "htps://api.openai.com/v1", "openai-chat"),
    address("ANTHROPIC_BASE_URL", "https://[::1", "anthropic"),
    address("GOOGLE_GEMINI_BASE_URL", "localhost:8080", "google"),
    address("OLLAMA_HOST", "http://", "ollama"),
    address("AZURE_OPENAI_ENDPOINT", "my-resource", "azure"),
    proxy("HTTPS_PROXY", "ftp://proxy:1", "the scheme 'ftp' is not supported"),
    proxy("https_proxy", "http://[::1"),
    proxy("ALL_PROXY", "http://proxy:port"),
]
STANDARD_INPUT = [
    piped(b"\x89PNG\r\n\x1a\n\0", "is not text (byte 0 is not UTF-8)"),
    piped(b"a\0b", "it holds NUL bytes"),
    piped(b"  \n", "there is no prompt"),
    piped(b"a" * (10 * 1024 * 1024 + 1), "larger than 10 MB"),
    line(b"nonsense\n", "is not what was expected: JSON is malformed"),
    line(b"[]\n", "a line of the input"),
    line(b'{"type": "nope"}\n', "unknown type 'nope'"),
    line(b'{"type": "user", "message": {"content": 3}}\n', "a line of the input"),
    line(b"\xff\n", "a line of the input"),
]
BAD_INPUTS = [
    *COMMAND_LINES,
    *SLASH_COMMANDS,
    *FILES,
    *SETTINGS,
    *ENVIRONMENT,
    *STANDARD_INPUT,
]


def test_there_are_a_hundred_different_bad_inputs() -> None:
    assert len({each.name for each in BAD_INPUTS}) == len(BAD_INPUTS) >= 100


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: bad.name)
def test_bad_input_is_one_sentence_with_the_right_exit_code(
    weft: WeftProgram, bad: BadInput
) -> None:
    for folder, contents in ((weft.project, bad.files), (weft.config, bad.config)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    arguments = bad.arguments
    if arguments[0].startswith("-p") and not {"-m", "WEFT_MODEL_DEFAULT"} & {*arguments, *bad.env}:
        arguments = ["-m", weft.script("Never."), *arguments]
    done = weft.call(*arguments, stdin=bad.stdin, env=bad.env)
    first, *more = done.stderr.splitlines()
    assert bad.told in first
    assert first.startswith("weft: ")
    assert more == []
    assert done.returncode == bad.code
    assert "Never." not in done.stdout
    if "stream-json" not in arguments or not bad.stdin:
        assert done.stdout == ""
        for left in bad.config:
            (weft.config / left).unlink()
        if bad.code == 2:
            assert weft.call("session", "list", "--json").stdout == "[]\n", "nothing is left"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "--modle", "x"],
        ["-p", "-m", "nope:x", "hi"],
        ["session", "show", "ses_nope"],
        ["help", "nonsense"],
        ["session", "--help"],
    ],
    ids=" ".join,
)
def test_the_program_says_what_its_main_function_says(
    weft: WeftProgram, arguments: list[str]
) -> None:
    """The tests that call `main()` in their own process stand for the program itself."""
    called, ran = weft.call(*arguments), weft.run(*arguments)
    assert (called.returncode, called.stdout, called.stderr) == (
        ran.returncode,
        ran.stdout,
        ran.stderr,
    )


def test_ten_megabytes_are_still_taken(weft: WeftProgram) -> None:
    info = {"provider": "scripted", "name": "wide", "context_window": 10_000_000}
    model = weft.script("Taken.", info=info)
    done = weft.run("-p", "-m", model, stdin=b"a b c d e\n" * 1_000_000)
    assert (done.returncode, done.stdout) == (0, "Taken.\n")


def test_a_prompt_that_is_not_text_is_refused(weft: WeftProgram) -> None:
    done = weft.run(*[os.fsdecode(b) for b in (b"-p", b"-m", b"a:b", b"\xff\xfe")])
    assert done.returncode == 2
    assert "not text" in done.stderr


def test_a_missing_key_says_how_to_give_one(weft: WeftProgram) -> None:
    done = weft.run("-p", "-m", "anthropic:claude-sonnet-4-6", "hi")
    assert done.returncode == 3
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "weft auth login" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rejected_key_says_so_and_the_prompt_is_kept(weft: WeftProgram) -> None:
    model = weft.script(
        [{"do": "error", "error": "AuthFailed", "message": "the key was refused", "status": 401}],
        "Now.",
    )
    done = weft.run("-p", "-m", model, "a long prompt")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: the key was refused; ")
    assert "weft auth login" in done.stderr
    assert weft.sessions()[0]["first_prompt"] == "a long prompt", "what was asked is not lost"


def test_settings_that_are_a_folder_are_named(weft: WeftProgram) -> None:
    (weft.config / "config.toml").mkdir(parents=True)
    code, sentence = refused(weft, "-p", "-m", "a:b", "hi")
    assert (code, "settings" in sentence, "config.toml" in sentence) == (2, True, True)


def test_no_place_to_write_is_a_failure_that_names_the_place(
    weft: WeftProgram, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, sentence = refused(
        weft, "-p", "-m", weft.script("Never."), "hi", WEFT_HOME=str(blocked / "data")
    )
    assert code == 1
    assert str(blocked / "data") in sentence


def test_a_project_that_may_not_be_read_by_its_settings_cannot_widen_permissions(
    weft: WeftProgram,
) -> None:
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text("[permissions]\nmode = 'bypass'\n")
    model = weft.script([{"do": "call", "name": "shell", "args": {"command": "touch made"}}], "No.")
    assert weft.run("-p", "-m", model, "hi").stdout == "No.\n"
    assert not (weft.project / "made").exists()


def test_an_error_inside_is_one_sentence_too_and_its_trace_is_in_the_log(weft: WeftProgram) -> None:
    """Planted: a function that fails in a way of which no code knows."""
    code = "import weft.cli.parse\nweft.cli.parse.ParsedArguments.flag = None\n"
    done = weft.run("-p", "-m", weft.script([text("x")]), "hi", env=weft.plant(code))
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert "something went wrong inside Weft" in done.stderr


def test_a_folder_that_is_gone_is_named(weft: WeftProgram, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    import subprocess

    done = subprocess.run(
        ["bash", "-c", command, "bash", str(gone), *weft.argv("-p", "hi")],
        env=weft.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "the folder you are in is gone" in done.stderr
