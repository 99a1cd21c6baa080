"""Commands for the model: `/model` with its list, `/effort`."""

from __future__ import annotations

import msgspec

from weft.api.inspection import ModelInfo
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.commands.model_list import ModelList, no_key
from weft.cli.chat.screens.list_question import ListAnswer
from weft.errors import UsageError, WeftError

RECENT = 200
"""Sessions that are looked at to know which models the user works with."""


class ModelCommands(CommandGroup):
    """Carries out the commands on what answers, and how hard it thinks."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/model": self._model, "/effort": self._effort}

    async def _model(self, words: str) -> None:
        if words == "next":
            words = await self._session("change").cycle_model()
        if words:
            await self._use(await self._meant(words))
        else:
            await self._pick_model()

    async def _use(self, model: str) -> None:
        chat = self._chat
        await chat.conversation.set_model(model)
        chat.live.model = chat.conversation.app.host.normal_model(model)
        if chat.conversation.session is None:
            chat.live.effort = chat.conversation.blank().effort
        self._say(f"the model is {chat.live.model} from the next step on")
        self._say_of_level()
        chat.screen.refresh()
        # Accepted all the same: the key may come with the next command.
        if chat.conversation.app.host.missing_key(chat.live.model):
            self._say(no_key(chat.live.model.partition(":")[0]))

    async def _meant(self, words: str) -> str:
        """The model that words mean: by its name, else the newest whose name has them."""
        host = self._chat.conversation.app.host
        try:
            host.normal_model(words)
        except UsageError:
            models = await self._list()
            found = models.newest(words)
            if found is None:
                raise
            return found
        return words

    async def _list(self) -> ModelList:
        app, live = self._chat.conversation.app, self._chat.live
        host = app.host
        rows = await app.sessions.list_saved(limit=RECENT)
        models = await host.available_models()
        if all(live.model != f"{each.provider}:{each.name}" for each in models):
            # One that no vendor lists: by a full name, of a gateway, from a file.
            models = [*self._unlisted(live.model), *models]
        return ModelList(
            models,
            current=live.model,
            effort=live.effort,
            recent=[row.model for row in rows],
            usable=host.usable_providers(),
            aliases=host.short_names(),
        )

    def _unlisted(self, name: str) -> list[ModelInfo]:
        try:
            info = self._chat.conversation.app.host.model(name).info
        except WeftError:
            return []  # there is no model yet, or it is one of a provider that is gone
        return [msgspec.structs.replace(info, name=name.partition(":")[2])]

    async def _pick_model(self) -> None:
        models = await self._list()
        if not models.rows:
            self._say(f"the model is {self._chat.live.model}; /model provider:model changes it")
            return
        answer = await self._chat.screen.choose_from(models.question())
        if answer is None:
            return
        await self._take(models, answer)
        if answer.key == "c-d":
            await self._keep(models.names[answer.row], answer.level)

    async def _take(self, models: ModelList, answer: ListAnswer) -> None:
        """Use the picked row; the current one at the current level changes nothing."""
        name = models.names[answer.row]
        if hint := models.lacks_key(name):
            raise UsageError(hint)
        if name != models.current:
            await self._use(name)
        if answer.level and answer.level != models.rows[answer.row].level:
            await self._set_effort(answer.level)

    async def _keep(self, name: str, level: str) -> None:
        """Also the model of new sessions."""
        value = f"{name}:{level}" if level else name
        self._say(await self._chat.conversation.app.change_setting("model.default", value))

    # -- effort

    async def _effort(self, words: str) -> None:
        conversation, live = self._chat.conversation, self._chat.live
        level: str | None = words
        if not words:
            levels = conversation.levels(live.model)
            if not levels:
                self._say(f"{live.model} has no thinking levels; /model picks another one")
                return
            title = f"Thinking level? (now {live.effort})"
            level = await self._pick_word(title, tuple(levels), levels, now=live.effort)
        if level is not None:
            await self._set_effort(level)

    async def _set_effort(self, level: str) -> None:
        await self._chat.conversation.set_effort(level)
        self._chat.live.effort = level
        self._say(f"effort: {level}")
        self._say_of_level()
        self._chat.screen.refresh()

    def _say_of_level(self) -> None:
        """Say it where the model lacks the level; a session does so by itself."""
        conversation = self._chat.conversation
        if conversation.session is None and (said := conversation.note_of_level):
            self._say(said)
