"""Result sentences: how a turn ended, and what a tool call does, in a few words."""

from __future__ import annotations

from typing import Any

from weft.events import FinishReason

SUCCESSFUL: tuple[FinishReason, ...] = ("stop", "submitted")
"""Finish reasons that are no failure."""

TURN_LIMITS: tuple[FinishReason, ...] = ("max_turns", "max_time", "max_tool_calls")
"""Finish reasons after which the next turn has all of the limit again."""

COMPACT_COMMAND = "/compact"
SHOWN = 200
"""Characters of an argument or a task that a short description shows."""

_REASONS: dict[FinishReason, str] = {
    "aborted": "the turn was stopped",
    "max_turns": "reached the limit of model answers in one turn",
    "max_time": "reached the limit of time for one turn",
    "max_tool_calls": "reached the limit of tool calls in one turn",
    "max_budget": "the budget is used up",
    "no_progress": "the model made no progress",
    "mistakes": "the model made too many mistakes in a row",
    "context_overflow": "the conversation no longer fits the model's context window",
    "schema_failed": "the answer does not match the schema",
    "provider_error": "the provider failed",
    "auth_error": "the API key is missing or was rejected",
    "halted": "the run was halted",
    "refusal": "the model refused to answer",
    "content_filter": "the provider's content filter stopped the answer",
    "safety": "the provider blocked the answer for safety",
    "length": "the answer was cut off at the model's output limit",
    "paused": "the provider paused the answer again and again",
    "malformed_call": "the model's tool calls were malformed",
}


_VERBS = {
    "shell": "running",
    "check": "running",
    "user_shell": "running",
    "user_shell_private": "running",
    "read": "reading",
    "list": "listing",
    "find": "searching",
    "grep": "searching",
    "edit": "editing",
    "multi_edit": "editing",
    "write": "writing",
    "fetch": "fetching",
    "agent": "agent",
}


def compaction_sentence(before: int, after: int) -> str:
    """What a compaction has gained, in tokens."""
    if after < before:
        return f"{before:,} tokens reduced to {after:,}"
    return f"nothing is gained: {before:,} tokens became {after:,}"


def finish_sentence(reason: FinishReason, detail: str) -> str:
    """One sentence about a turn that did not end well."""
    plain = _REASONS.get(reason, reason)
    if reason == "auth_error":
        sentence = detail or plain
        advice = "set it in the environment, or save it with `weft auth login`"
        # The provider's own sentence often says so already, and twice is no help.
        told = ("weft auth", "gcloud auth", "the key came from")
        is_told = any(each in sentence for each in told)
        return sentence if is_told else f"{sentence}; {advice}"
    if reason in TURN_LIMITS and detail:
        return detail  # it says the same, with the number
    if reason == "context_overflow" and COMPACT_COMMAND in detail:
        return detail  # the provider's sentence says so, and what to do
    return f"{plain}: {detail}" if detail and detail != plain else plain


def chat_sentence(sentence: str) -> str:
    """A sentence as a chat says it: `/login` is the command that saves a key there, and `/drive`
    the one that takes over.
    """
    # A key that is given there is used at once, whatever the environment has.
    said = sentence.replace(
        "or unset it and save one with `weft auth login", "or save one with `/login"
    )
    said = said.replace("weft auth login", "/login")
    return said.replace("claim_driver() lets it drive", "/drive takes over")


def describe_call(name: str, args: dict[str, Any]) -> str:
    """A call in a few words: `read src/a.py`."""
    if name == "agent" and isinstance(args.get("description") or args.get("prompt"), str):
        task = " ".join(str(args.get("description") or args["prompt"]).split())
        return f"agent {args.get('agent') or 'general'}: {task[:SHOWN]}"
    # What is looked for says more than where.
    first = ("pattern",) if name in ("grep", "find") else ()
    # Arguments come from the model and may be anything: what is no text says nothing here.
    for key in (*first, "command", "path", "pattern", "query"):
        value = args.get(key)
        if isinstance(value, str) and value:
            return f"{name} {' '.join(value.split())[:SHOWN]}"
    return name


def call_in_progress(name: str, args: dict[str, Any]) -> str:
    """A call that an agent has made, as what it does: `reading src/a.py`."""
    tool, _, about = describe_call(name, args).partition(" ")
    verb = _VERBS.get(tool, tool)
    return f'{verb} "{about}"' if tool in ("grep", "find") and about else f"{verb} {about}".strip()


def verb_of(tool: str) -> str:
    """What a tool does while it runs, `reading`; empty for a tool without a word of its own."""
    return _VERBS.get(tool, "")


def count_of(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def thousands(count: int) -> str:
    """`12.3k`, `0.4k`, `42`"""
    if count < 100:
        return str(count)
    # What would be 1000.0k is 1.0M.
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"
