"""A program of the Python SDK that uses what the SDK offers, and prints what it saw as JSON.

python python_program.py CLI MODEL FOLDER ENVIRONMENT
"""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from claude_agent_sdk import (  # type: ignore[import-not-found,unused-ignore]
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    query,
    tool,
)

CLI, MODEL, FOLDER, ENVIRONMENT = sys.argv[1:]
SEEN: list[list] = []


@tool("add", "Add two numbers", {"a": float, "b": float})
async def add(args):
    SEEN.append(["in-process", args])
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


async def permit(name, given, context):
    SEEN.append(["permission", name, sorted(given), bool(context.tool_use_id)])
    if name == "Write":
        return PermissionResultAllow(updated_input={**given, "content": "changed\n"})
    if "stop" in given.get("command", ""):
        return PermissionResultDeny(message="no more", interrupt=True)
    return PermissionResultAllow()


async def guard(given, tool_use_id, context):
    name = given.get("tool_name", "")
    SEEN.append(["hook", given["hook_event_name"], name])
    if given["hook_event_name"] == "PreToolUse" and "made" in json.dumps(given["tool_input"]):
        said = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
        return {"hookSpecificOutput": {**said, "permissionDecisionReason": "no touching"}}
    return {}


async def said(client, words):
    await client.query(words)
    async for message in client.receive_response():
        kind = type(message).__name__
        if kind == "AssistantMessage":
            names = [type(each).__name__ for each in message.content]
            SEEN.append([kind, names, [getattr(each, "name", "") for each in message.content]])
        elif kind == "ResultMessage":
            SEEN.append([kind, message.subtype, message.is_error, message.stop_reason])
        elif kind == "UserMessage" and isinstance(message.content, list):
            results = [each for each in message.content if hasattr(each, "tool_use_id")]
            if results:
                failed = [bool(each.is_error) for each in results]
                SEEN.append([kind, failed, message.tool_use_result is None])


def options(**more):
    return ClaudeAgentOptions(
        cli_path=CLI,
        cwd=FOLDER,
        model=MODEL,
        env=json.loads(ENVIRONMENT),
        setting_sources=[],
        extra_args={"replay-user-messages": None},
        **more,
    )


async def guarded():
    hooks = {name: [HookMatcher(hooks=[guard])] for name in ("PreToolUse", "PostToolUse")}
    hooks["UserPromptSubmit"] = [HookMatcher(hooks=[guard])]
    hooks["Stop"] = [HookMatcher(hooks=[guard])]
    reviewer = AgentDefinition(description="Reviews", prompt="You review.", tools=["Read"])
    terms = options(
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        can_use_tool=permit,
        hooks=hooks,
        agents={"reviewer": reviewer},
        system_prompt="You help.",
        disallowed_tools=["WebSearch", "WebFetch", "NotebookEdit"],
        max_turns=20,
        thinking={"type": "disabled"},
        add_dirs=[str(Path(FOLDER).parent)],
    )
    async with ClaudeSDKClient(terms) as client:
        info = await client.get_server_info()
        for words in ("add", "write", "touch", "stop"):
            SEEN.append(["turn", words])
            await said(client, words)
        found = {
            "initialize": sorted(info),
            "agents": [each["name"] for each in info["agents"] if each["name"] == "reviewer"],
            "mcp": await client.get_mcp_status(),
            "context": sorted(await client.get_context_usage()),
        }
        await client.set_permission_mode("acceptEdits")
        await client.set_model(MODEL)
        await client.interrupt()
        await client.toggle_mcp_server("calc", False)
        found["off"] = (await client.get_mcp_status())["mcpServers"][0]["status"]
    return found


async def once():
    terms = options(permission_mode="acceptEdits", include_partial_messages=True)
    told = query(prompt="hello", options=terms)
    return sorted({type(message).__name__ async for message in told})


async def main():
    found = await guarded()
    print(json.dumps({"seen": SEEN, "once": await once(), **found}))


asyncio.run(main())
