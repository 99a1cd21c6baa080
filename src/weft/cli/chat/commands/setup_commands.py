"""Commands for what the user and the project provide: `/login`, `/logout`, `/config`, `/theme`,
`/doctor`, `/init`, `/review`, `/skills`, `/hooks`, `/trust`, `/boundary`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import anyio.to_thread

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.list_question import ListQuestion, ListRow
from weft.cli.sanitize import visible
from weft.config.setting_keys import KEYS, known
from weft.errors import UsageError, did_you_mean
from weft.view import TableBlock

AT_START = ("animation", "keys", "chat.keys", "notify", "statusline", "profile")
"""Settings that the chat reads when it starts."""
_LINES = re.compile(r"(\d+)\s*-\s*(\d+)")


class SetupCommands(CommandGroup):
    """Carries out the commands on what is around the conversation."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            "/login": self._login,
            "/logout": self._logout,
            "/config": self._config,
            "/theme": self._theme,
            "/doctor": self._doctor,
            "/init": self._init,
            "/review": self._review,
            "/skills": self._skills,
            "/hooks": self._hooks,
            "/trust": self._trust,
            "/boundary": self._boundary,
        }

    async def _login(self, words: str) -> None:
        from weft.cli.chat.login import LoginDialog  # only for those who log in

        dialog = LoginDialog(self._chat)
        if words:
            await dialog.login(words.lower())
        else:
            await dialog.offer(is_asked_for=True)

    async def _logout(self, words: str) -> None:
        from weft.config.api_keys import KeyFile  # few give a key back

        app = self._chat.conversation.app
        keys = KeyFile(app.places.config, app.config.get("profile"))
        saved = tuple(keys.keys())
        if not saved:
            raise UsageError("no key is saved; those of the environment stay until you unset them")
        provider = words.lower() or await self._pick_word("Delete the key of which?", saved)
        if provider is None:
            return
        if not keys.forget(provider):
            raise UsageError(f"no key for {provider!r} is saved{did_you_mean(provider, saved)}")
        self._say(f"deleted the key for {provider}")

    async def _theme(self, words: str) -> None:
        themes: tuple[str, ...] = get_args(KEYS["theme"].kind)
        now = str(self._chat.conversation.app.config.get("theme"))
        chosen = words or await self._pick_word("Which colors?", themes, now=now)
        if chosen is not None:
            await self._change("theme", chosen)

    async def _doctor(self, words: str) -> None:
        from weft.cli.commands.doctor import examine  # only for those who ask
        from weft.cli.parse import parse

        arguments = parse(["doctor", "-C", self._chat.conversation.app.project_path])
        self._chat.screen.notify("looking…")
        # In a thread: it starts programs and waits for them.
        found = await anyio.to_thread.run_sync(lambda: list(examine(arguments)))
        self._chat.screen.notify("")
        rows = tuple((each.what, each.state, visible(each.detail)) for each in found)
        self._show(TableBlock(title="This machine", rows=rows))

    async def _config(self, words: str) -> None:
        name, _, value = words.partition(" ")
        if not words or words == "list":
            await self._pick_setting()
        elif name in ("unset", "reset"):
            await self._change(value.strip(), None)
        elif value and name not in ("get", "set"):
            await self._change(name, _unquoted(value))
        elif name == "set":
            await self._change(*_two(value))
        else:
            self._show_setting(value.strip() if name == "get" else name)

    async def _change(self, name: str, value: str | None) -> None:
        app = self._chat.conversation.app
        before = app.config.all().get(name)
        said = await app.change_setting(name, value)
        is_late = name in AT_START and app.config.all().get(name) != before
        if name == "theme":
            self._chat.screen.paint(str(app.config.get("theme")))
        later = "; the chat takes it from its next start on" if is_late else ""
        self._say(f"{said}{later}")

    def _show_setting(self, name: str) -> None:
        config = self._chat.conversation.app.config
        about = known(name).about
        found = config.lookup(name)
        rows = (("value", shown_value(found.value)), ("from", found.source), ("about", about))
        self._show(TableBlock(title=name, rows=rows))

    async def _pick_setting(self) -> None:
        """The list of all settings; Enter begins the line that changes the picked one."""
        config = self._chat.conversation.app.config
        found = config.all()
        rows = tuple(
            ListRow(
                name,
                (shown_value(value.value), _place(value.source), KEYS[name].about),
                is_dim=value.source == "default",
            )
            for name, value in found.items()
        )
        answer = await self._chat.screen.choose_from(
            ListQuestion(title="Settings", rows=rows, enter="changes it", keeps=(0, 1, 2))
        )
        if answer is not None:
            self._chat.screen.put_back(f"/config {list(found)[answer.row]} ")

    async def _init(self, words: str) -> None:
        from weft.cli.chat.commands.init_prompt import init_prompt  # once in a project

        # In the middle of a turn it would be taken for a remark on the task.
        self._must_be_idle("/init")
        asked = init_prompt(self._chat.conversation.app.project_path, words)
        await self._chat.say_text(asked, typed=f"/init {words}".rstrip())

    async def _review(self, words: str) -> None:
        from weft.cli.chat.commands.init_prompt import review_prompt  # as for /init

        self._must_be_idle("/review")
        await self._chat.say_text(review_prompt(words), typed=f"/review {words}".rstrip())

    async def _skills(self, words: str) -> None:
        app, session = self._chat.conversation.app, self._chat.conversation.session
        skills = app.host.skills(app.project_path)
        active = (await session.list_skills())[1] if session is not None else []
        for problem in skills.problems:
            self._say(f"left out: {problem}")
        if not words:
            if not skills.found:
                self._say("there are no skills; add them as .agents/skills/NAME/SKILL.md")
                return
            names = list(skills.found)
            chosen = await self._pick(
                "Skills",
                tuple(
                    ListRow(name, ("on" if name in active else "", skill.description))
                    for name, skill in skills.found.items()
                ),
                enter="switches it on or off",
            )
            if chosen is None:
                return
            words = names[chosen]
        session = self._session("switch a skill on for")
        if words in active:
            await session.deactivate_skill(words)
            self._say(f"the skill {words} is off")
        else:
            await session.activate_skill(words)
            self._say(f"the skill {words} is on: the model reads all of it")

    async def _hooks(self, words: str) -> None:
        app = self._chat.conversation.app
        rows = [
            (event, matcher or "*", visible(command), layer.source)
            for layer in app.config.layers("hooks")
            for event, matcher, command in _hooks_in(layer.value)
        ]
        if rows:
            self._show(TableBlock(title="Hooks", rows=tuple(rows)))
        else:
            self._say("no hooks are set; docs/hooks.md says how")
        withheld = await app.trust_question()
        if withheld is not None and withheld.commands:
            self._say("hooks of this folder are ignored, because it is not trusted; /trust asks")

    async def _trust(self, words: str) -> None:
        app = self._chat.conversation.app
        if words == "off":
            was = await app.forget_trust()
            self._say("not trusted any more" if was else "this folder was not trusted")
        elif words:
            raise UsageError(f"/trust takes nothing, or off, not {words!r}")
        else:
            await self._chat.ask_trust(is_asked_for=True)

    async def _boundary(self, words: str) -> None:
        session = self._session("set a boundary in")
        if words == "off":
            await session.clear_all_boundaries()
            self._say("every file may be edited everywhere")
            return
        path, _, rest = words.rpartition(" ")
        path, rest = path.strip(), rest.strip()
        if not path:
            if not words:
                raise UsageError("/boundary needs a file and lines: /boundary src/a.py 10-20")
            held = await session.boundary_for(words)
            lines = f"lines {held.first + 1}-{held.last + 1}" if held is not None else "everywhere"
            self._say(f"{words} may be edited: {lines}")
        elif rest == "off":
            await session.clear_boundary(path)
            self._say(f"{path} may be edited everywhere")
        elif (lines_ := _LINES.fullmatch(rest)) is not None:
            first, last = int(lines_[1]), int(lines_[2])
            if first < 1 or last < first:
                raise UsageError(f"{rest!r} is not a range of lines; the first line is 1")
            await session.set_boundary(path, first - 1, last - 1)
            self._say(f"{path} may be edited in lines {first}-{last} only")
        else:
            raise UsageError(f"{rest!r} is not a range of lines; write it as 10-20, or off")


def _two(words: str) -> tuple[str, str]:
    name, _, value = words.strip().partition(" ")
    if not value.strip():
        raise UsageError("/config set needs a setting and its value: /config set theme dark")
    return name, _unquoted(value)


def _unquoted(value: str) -> str:
    """A value without the quotes that a shell would take off it."""
    value = value.strip()
    inner = value[1:-1]
    is_quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
    return inner if is_quoted and value[0] not in inner else value


def shown_value(value: Any) -> str:
    """A setting in one line, without the keys that stand in it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(value) or "(none)"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "(none)"
    return str(value) or "(none)"


def _place(source: str) -> str:
    """Where a value came from, in a word where that is plain."""
    return "" if source == "default" else source.rpartition("/")[2]


def _hooks_in(table: Any) -> list[tuple[str, str, str]]:
    """Moment, matcher and command of each hook; in both shapes in which they may be written."""
    found: list[tuple[str, str, str]] = []
    for event, entries in table.items() if isinstance(table, Mapping) else ():
        for entry in entries:
            inner = entry.get("hooks", [entry])
            found += [
                (str(event), str(entry.get("matcher") or ""), str(each.get("command", "")))
                for each in inner
            ]
    return found
