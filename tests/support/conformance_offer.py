"""What the official conformance suite asks a server for by name, made of our server's own parts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import zlib
from typing import Any

from weft.errors import FinalToolError, UsageError
from weft.mcp_server import (
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    CallClient,
    RequestProblem,
    ResourceMissing,
    RunTool,
    ServedOffer,
    ServedPrompt,
    ServedResource,
    ServedTool,
    ToolReply,
)

SECRET = secrets.token_bytes(32)
_TEXT = {"type": "string"}


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _png() -> str:
    head = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    pixel = zlib.compress(b"\0\xff\0\0")
    parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", pixel), _chunk(b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


PNG = _png()
WAV = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0" + b"\0" * 16 + b"data\0\0\0\0").decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image() -> dict[str, Any]:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, said: str, kind: str = "text/plain") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def sampling(prompt: str, most: int = 100) -> dict[str, Any]:
    messages = [{"role": "user", "content": text(prompt)}]
    return {
        "method": "sampling/createMessage",
        "params": {"messages": messages, "maxTokens": most},
    }


ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", name=_TEXT)


def signed(value: str) -> str:
    """A state that cannot be changed without being noticed."""
    return f"{value}.{hmac.new(SECRET, value.encode(), hashlib.sha256).hexdigest()}"


def checked(state: str) -> str:
    value = state.rpartition(".")[0]
    if not state or not hmac.compare_digest(signed(value), state):
        raise RequestProblem(INVALID_PARAMS, "the state is not ours")
    return value


async def answers(client: CallClient, requests: dict[str, Any], state: str = "") -> dict[str, Any]:
    """What the client answers; asked again as long as something is missing."""
    if all(isinstance(client.replies.get(name), dict) for name in requests):
        return client.replies
    return await client.need(requests, state)


def content_of(reply: Any) -> dict[str, Any]:
    found = reply.get("content") if isinstance(reply, dict) else None
    return found if isinstance(found, dict) else {}


# --- tools -----------------------------------------------------------------------------------


async def _simple(args: dict[str, Any], client: CallClient) -> str:
    return "This is a simple text response for testing."


async def _image(args: dict[str, Any], client: CallClient) -> ToolReply:
    return ToolReply([image()])


async def _audio(args: dict[str, Any], client: CallClient) -> ToolReply:
    return ToolReply([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])


async def _embedded(args: dict[str, Any], client: CallClient) -> ToolReply:
    said = "This is an embedded resource content."
    return ToolReply([embedded("test://embedded-resource", said)])


async def _mixed(args: dict[str, Any], client: CallClient) -> ToolReply:
    data = json.dumps({"test": "data", "value": 123})
    resource = embedded("test://mixed-content-resource", data, "application/json")
    return ToolReply([text("Multiple content types test:"), image(), resource])


async def _fails(args: dict[str, Any], client: CallClient) -> str:
    raise FinalToolError("This tool intentionally returns an error for testing")


async def _progress(args: dict[str, Any], client: CallClient) -> str:
    for done in (0, 50, 100):
        client.progress(f"{done}", done, 100)
    return "done"


async def _logs(args: dict[str, Any], client: CallClient) -> str:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        client.log(said)
    return "logged"


def _needs(client: CallClient, name: str) -> None:
    if name not in client.capabilities:
        needed: dict[str, Any] = {"requiredCapabilities": {name: {}}}
        raise RequestProblem(MISSING_CAPABILITY, f"the client has no {name}", needed)


async def _missing(args: dict[str, Any], client: CallClient) -> str:
    _needs(client, "sampling")
    return "it has"


async def _streams(args: dict[str, Any], client: CallClient) -> str:
    client.progress("asks", 1, 2)
    found = await answers(client, {"user_name": NAME})
    return f"Hello, {content_of(found['user_name']).get('name')}!"


async def _elicits(args: dict[str, Any], client: CallClient) -> str:
    found = await answers(client, {"user_name": NAME})
    name = content_of(found["user_name"]).get("name")
    if not isinstance(name, str):
        found = await client.need({"user_name": NAME}, "")
    return f"Hello, {name}!"


async def _samples(args: dict[str, Any], client: CallClient) -> str:
    asked = {"capital_question": sampling("What is the capital of France?")}
    found = await answers(client, asked)
    return str(content_of(found["capital_question"]).get("text"))


async def _roots(args: dict[str, Any], client: CallClient) -> str:
    found = await answers(client, {"client_roots": ROOTS})
    return json.dumps(found["client_roots"].get("roots"))


async def _state(args: dict[str, Any], client: CallClient) -> str:
    asked = {"confirm": form("Please confirm", ok={"type": "boolean"})}
    if client.replies:
        checked(client.state)
    await answers(client, asked, signed("confirm"))
    return "state-ok"


async def _several(args: dict[str, Any], client: CallClient) -> str:
    asked = {
        "user_name": NAME,
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    if client.replies:
        checked(client.state)
    found = await answers(client, asked, signed("several"))
    return f"{content_of(found['user_name']).get('name')}: all there"


async def _rounds(args: dict[str, Any], client: CallClient) -> str:
    first = {"step1": form("Step 1: What is your name?", name=_TEXT)}
    second = {"step2": form("Step 2: What is your favorite color?", color=_TEXT)}
    if not client.state:
        await client.need(first, signed("1"))
    if checked(client.state) == "1":
        name = content_of(client.replies.get("step1")).get("name")
        await client.need(second, signed(f"2{name}"))
    color = content_of(client.replies.get("step2")).get("color")
    return f"{checked(client.state)[1:]} likes {color}"


async def _capable(args: dict[str, Any], client: CallClient) -> str:
    known = {"elicitation": NAME, "sampling": sampling("Say hello"), "roots": ROOTS}
    asked = {name: each for name, each in known.items() if name in client.capabilities}
    if asked:
        await answers(client, asked)
    return "done"


async def _old_sampling(args: dict[str, Any], client: CallClient) -> str:
    _needs(client, "sampling")
    found = await answers(client, {"sampled": sampling(str(args["prompt"]))})
    return f"LLM response: {content_of(found['sampled']).get('text')}"


async def _old_elicitation(args: dict[str, Any], client: CallClient) -> str:
    _needs(client, "elicitation")
    asked = form(
        str(args["message"]),
        username={**_TEXT, "description": "User's response"},
        email={**_TEXT, "description": "User's email address"},
    )
    found = (await answers(client, {"user": asked}))["user"] or {}
    return f"User response: {json.dumps(found)}"


def _titled(word: str, kind: str) -> list[dict[str, str]]:
    numbers = ("First", "Second", "Third")
    return [{"const": f"{word}{n}", "title": f"{t} {kind}"} for n, t in enumerate(numbers, 1)]


async def _asked(asked: dict[str, Any], client: CallClient) -> str:
    asked["params"]["requestedSchema"]["required"] = []
    found = (await answers(client, {"user": asked}))["user"] or {}
    content = json.dumps(found.get("content"))
    return f"Elicitation completed: action={found.get('action')}, content={content}"


async def _defaults(args: dict[str, Any], client: CallClient) -> str:
    status = {**_TEXT, "enum": ["active", "inactive", "pending"], "default": "active"}
    asked = form(
        "Please look at these",
        name={**_TEXT, "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status=status,
        verified={"type": "boolean", "default": True},
    )
    return await _asked(asked, client)


async def _enums(args: dict[str, Any], client: CallClient) -> str:
    options = ["option1", "option2", "option3"]
    names = ["Option One", "Option Two", "Option Three"]
    asked = form(
        "Please choose",
        untitledSingle={**_TEXT, "enum": options},
        titledSingle={**_TEXT, "oneOf": _titled("value", "Option")},
        legacyEnum={**_TEXT, "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": {**_TEXT, "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": _titled("value", "Choice")}},
    )
    return await _asked(asked, client)


_BARE: dict[str, RunTool] = {
    "test_simple_text": _simple,
    "test_image_content": _image,
    "test_audio_content": _audio,
    "test_embedded_resource": _embedded,
    "test_multiple_content_types": _mixed,
    "test_error_handling": _fails,
    "test_tool_with_progress": _progress,
    "test_tool_with_logging": _logs,
    "test_logging_tool": _logs,
    "test_elicitation_sep1034_defaults": _defaults,
    "test_elicitation_sep1330_enums": _enums,
    "test_missing_capability": _missing,
    "test_streaming_elicitation": _streams,
    "test_input_required_result_elicitation": _elicits,
    "test_input_required_result_sampling": _samples,
    "test_input_required_result_list_roots": _roots,
    "test_input_required_result_request_state": _state,
    "test_input_required_result_multiple_inputs": _several,
    "test_input_required_result_multi_round": _rounds,
    "test_input_required_result_tampered_state": _state,
    "test_input_required_result_capabilities": _capable,
}


def _tools() -> tuple[ServedTool, ...]:
    bare = [
        ServedTool(name=name, description=f"does what {name} asks for", run=run)
        for name, run in _BARE.items()
    ]
    sampled = ServedTool(
        name="test_sampling",
        description="asks the client's model",
        properties={"prompt": _TEXT},
        required=("prompt",),
        run=_old_sampling,
    )
    elicited = ServedTool(
        name="test_elicitation",
        description="asks the client's user",
        properties={"message": _TEXT},
        required=("message",),
        run=_old_elicitation,
    )
    return (*bare, sampled, elicited)


# --- resources and prompts -------------------------------------------------------------------


async def _resources() -> list[ServedResource]:
    return [
        ServedResource(
            uri="test://static-text", name="text", description="a text", mime_type="text/plain"
        ),
        ServedResource(
            uri="test://static-binary", name="binary", description="a dot", mime_type="image/png"
        ),
    ]


async def _read(uri: str) -> list[dict[str, Any]]:
    if uri == "test://static-text":
        said = "This is the content of the static text resource."
        return [{"uri": uri, "mimeType": "text/plain", "text": said}]
    if uri == "test://static-binary":
        return [{"uri": uri, "mimeType": "image/png", "blob": PNG}]
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]
    raise ResourceMissing(f"there is no resource {uri!r}")


async def _prompts() -> list[ServedPrompt]:
    return [
        ServedPrompt(name="test_simple_prompt", description="simple"),
        ServedPrompt(
            name="test_prompt_with_arguments",
            description="with arguments",
            arguments={"arg1": "First test argument", "arg2": "Second test argument"},
            required=("arg1", "arg2"),
        ),
        ServedPrompt(
            name="test_prompt_with_embedded_resource",
            description="with a resource",
            arguments={"resourceUri": "URI of the resource to embed"},
            required=("resourceUri",),
        ),
        ServedPrompt(name="test_prompt_with_image", description="with an image"),
        ServedPrompt(name="test_input_required_result_prompt", description="asks first"),
    ]


async def _prompt(name: str, args: dict[str, Any], client: CallClient) -> list[dict[str, Any]]:
    match name:
        case "test_simple_prompt":
            parts = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{args['arg1']}', arg2='{args['arg2']}'"
            parts = [text(said)]
        case "test_prompt_with_embedded_resource":
            said = "Embedded resource content for testing."
            resource = embedded(str(args["resourceUri"]), said)
            parts = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            parts = [image(), text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            asked = {"user_context": form("What context should the prompt use?", context=_TEXT)}
            found = await answers(client, asked)
            parts = [text(f"Use {content_of(found['user_context']).get('context')}.")]
        case _:
            raise UsageError(f"there is no prompt {name!r}")
    return [{"role": "user", "content": part} for part in parts]


async def _complete(ref: dict[str, Any], argument: dict[str, Any]) -> list[str]:
    return [str(argument.get("value", ""))]


async def _taken(params: dict[str, Any]) -> dict[str, Any]:
    return {}


def fixture_offer() -> ServedOffer:
    """All of it."""
    return ServedOffer(
        instructions="For the conformance suite.",
        tools=_tools(),
        resources=_resources,
        templates=(
            ServedResource(
                uri="test://template/{id}/data",
                name="template",
                description="by number",
                mime_type="application/json",
            ),
        ),
        read=_read,
        prompts=_prompts,
        prompt=_prompt,
        complete=_complete,
        # Its resources never change, and it logs at one level.
        older_methods={
            "logging/setLevel": _taken,
            "resources/subscribe": _taken,
            "resources/unsubscribe": _taken,
        },
        older_capabilities={"logging": {}, "resources": {"subscribe": True}},
    )
