"""The commands of `weft mcp` as data; loaded when one of them is asked for."""

from __future__ import annotations

from typing import Final

from weft.cli.command_spec import JSON, CommandOption, CommandSpec

_SCOPES: Final = ("local", "project", "user")
_SCOPE: Final = CommandOption(
    ("-s", "--scope"),
    "local (you, in this folder), project (.mcp.json) or user (you, everywhere).",
    "text",
    "SCOPE",
    _SCOPES,
)

MCP_VERBS: Final = (
    CommandSpec("list", "Show the servers that are configured here", "", (JSON,), aliases=("ls",)),
    CommandSpec("get", "Show a server: what it runs, and its tools", "NAME", (JSON,)),
    CommandSpec(
        "add",
        "Add a server: a program, or an address",
        "NAME [URL | -- COMMAND ARGUMENT...]",
        (
            _SCOPE,
            CommandOption(
                ("-t", "--transport"),
                "How it is spoken to: stdio (a program), http, or sse (the old way over HTTP).",
                "text",
                "TRANSPORT",
                ("stdio", "http", "sse"),
            ),
            CommandOption(
                ("-H", "--header"),
                "Send a header to it; ${VARIABLE} is filled in, and may be repeated.",
                "many",
                "NAME: VALUE",
            ),
            CommandOption(
                ("-e", "--env"), "Set a variable for it; may be repeated.", "many", "NAME=VALUE"
            ),
            CommandOption(
                ("--no-sandbox",), "Run it without the sandbox, with all that you may do."
            ),
            CommandOption(("--no-network",), "Run it without the network."),
        ),
    ),
    CommandSpec("add-json", "Add a server as it would stand in .mcp.json", "NAME JSON", (_SCOPE,)),
    CommandSpec("remove", "Remove a server", "NAME", (_SCOPE,), aliases=("rm",)),
    CommandSpec(
        "login",
        "Log in to a server in your browser",
        "NAME",
        (
            CommandOption(
                ("--client-id",),
                "As a client that you have registered; its secret is read from MCP_CLIENT_SECRET.",
                "text",
                "ID",
            ),
            CommandOption(
                ("--callback-port",), "The port that is registered for it.", "whole", "PORT"
            ),
        ),
    ),
    CommandSpec("logout", "Forget the login to a server", "NAME"),
    CommandSpec("allow", "Let a server that this project names be started", "NAME"),
    CommandSpec("refuse", "Never start a server that this project names", "NAME"),
    CommandSpec("serve", "Offer Weft to other agents, as an MCP server over standard input"),
    CommandSpec(
        "import",
        "Show the servers of another agent: claude, codex, opencode, vscode, or a file",
        "FROM",
        (CommandOption(("-y", "--yes"), "Write them into your own file."),),
    ),
    CommandSpec(
        "reset-project-choices", "Forget which servers of this project you allowed or refused"
    ),
)
