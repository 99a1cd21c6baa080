"""What servers ask the user: bounded, with nothing hidden in it, and no more than is shown."""

from __future__ import annotations

from typing import Any

import pytest

from weft.mcp.elicitation import DECLINE, answer_elicitation
from weft.tools import UserQuestion

pytestmark = pytest.mark.anyio

EVIL = "a\x1b[2Jb\u202ec\U000e0041d\x9bm"


class User:
    """Gives the same answers to all questions, and remembers them."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[UserQuestion] = []

    async def __call__(self, question: UserQuestion) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def form(user: User, **fields: Any) -> Any:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    params = {"message": "Which one?", "requestedSchema": schema}
    return await answer_elicitation(params, "s", user)


FIELDS: dict[str, dict[str, Any]] = {
    "a default": {"type": "string", "default": EVIL},
    "a title": {"type": "string", "title": EVIL},
    "a description": {"type": "string", "description": EVIL},
    "choices": {"type": "string", "enum": [EVIL, "b"]},
    "choices with titles": {"type": "string", "oneOf": [{"const": EVIL, "title": EVIL}]},
    "a kind": {"type": EVIL, "enum": ["a"]},
}


@pytest.mark.parametrize("attack", FIELDS)
async def test_nothing_is_hidden_in_a_question(attack: str) -> None:
    user = User("something else")
    await form(user, x=FIELDS[attack])
    shown = str([(each.text, each.options) for each in user.asked])
    assert user.asked
    for hidden in ("\\x1b", "\\u202e", "\\U000e0041", "\\x9b"):
        assert hidden not in shown


async def test_a_question_has_a_largest_size() -> None:
    long = "x" * 1_000_000
    for field in FIELDS.values():
        user = User("a")
        await form(user, **{"n" * 10_000: {**field, "default": long, "title": long}})
        assert all(len(each.text) + len(str(each.options)) < 20_000 for each in user.asked)


async def test_a_choice_is_told_as_the_server_wrote_it() -> None:
    user = User("ab")
    found = await form(user, x={"type": "string", "enum": ["a\u200bb", "c"]})
    assert user.asked[0].options == ("ab", "c", DECLINE)
    assert found.content == {"x": "a\u200bb"}


@pytest.mark.parametrize("choices", [["a", "a\u200b"], ["\u200b"], ["Decline", "x"]])
async def test_choices_that_look_the_same_are_not_put_to_the_user(choices: list[str]) -> None:
    user = User("a")
    found = await form(user, x={"type": "string", "enum": choices})
    assert (found.action, user.asked) == ("decline", [])


@pytest.mark.parametrize(
    "name",
    ["password", "PIN", "api-key", "apiKey", "client_secret", "passphrase", "otp", "cvv", "token"],
)
async def test_no_one_is_asked_for_a_secret_whatever_it_is_called(name: str) -> None:
    user = User("hunter2")
    for key, field in ((name, {}), ("x", {"title": name}), ("x", {"description": f"your {name}"})):
        assert (await form(user, **{key: {"type": "string", **field}})).action == "decline"
    assert user.asked == []


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "file:///etc/passwd", "https://", "http:///x", "//x", ""),
        *("https://a b/", "https://x/\u202egpj.exe", "https://x/\x1b[2J", "https://x/\r\ny"),
        "https://x/" + "y" * 5000,
    ],
)
async def test_an_address_that_is_none_is_not_shown(url: str) -> None:
    user = User("Go on")
    found = await answer_elicitation({"mode": "url", "message": "m", "url": url}, "s", user)
    assert (found.action, user.asked) == ("decline", [])


@pytest.mark.parametrize(
    "params", [None, 7, [], {"message": 7}, {"requestedSchema": []}, {"mode": ["form"]}]
)
async def test_what_is_no_question_is_declined(params: Any) -> None:
    user = User("Go on")
    assert (await answer_elicitation(params, "s", user)).action == "decline"
    assert user.asked == []


ADDRESSES = [
    "https://login.example@evil.example/",
    "https://login.example:443@evil.example/",
    "https://login.example\\@evil.example/",
    "https://l\u043egin.example/",
    "https://login.example\u2024evil.example/",
    "https://login.example/\u202egpj.exe",
    "https://login.example /",
    "https://login.example/\n",
    "https:///evil.example",
    "https://?login.example",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "vscode://evil/x",
    "HTTPS://x" + "y" * 5_000,
]


@pytest.mark.parametrize("url", ADDRESSES)
async def test_no_address_is_shown_that_looks_like_another(url: str) -> None:
    user = User("Go on")
    params = {"mode": "url", "message": "Log in", "url": url, "elicitationId": "1"}
    assert (await answer_elicitation(params, "s", user)).action == "decline"
    assert not user.asked


async def test_an_address_is_shown_whole_with_the_host_that_it_leads_to() -> None:
    user = User("Go on")
    url = "https://login.example:8443/a?next=https://me@other.example"
    params = {"mode": "url", "message": "Log in", "url": url, "elicitationId": "1"}
    assert (await answer_elicitation(params, "s", user)).action == "accept"
    assert user.asked[0].text.endswith(
        f"open this address of login.example:8443 in a browser:\n{url}"
    )


async def test_the_name_of_a_server_makes_nothing_a_secret() -> None:
    user = User("green")
    schema = {"type": "object", "properties": {"color": {"type": "string"}}}
    params = {"message": "Which one?", "requestedSchema": schema}
    assert (await answer_elicitation(params, "token-shop", user)).action == "accept"


SECRETS = [
    *("password", "pass\u200bword", "pass word", "pass_word", "pass-word", "Pass.Word", "passWord"),
    *("\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44", "p\u0430ssword", "p a s s w o r d"),
    *("pin_code", "PIN", "cardPin", "your-otp", "accessKey", "mnemonic", "recovery phrase"),
    *("verificationCode", "one-time code", "card number", "Passwort", "contrase\u00f1a", "CVV2"),
]


@pytest.mark.parametrize("place", ["name", "title", "description", "message"])
@pytest.mark.parametrize("word", SECRETS)
async def test_no_spelling_of_a_secret_is_asked_for(word: str, place: str) -> None:
    user = User("hunter2")
    field = {"type": "string", **({place: f"Your {word}"} if place != "message" else {})}
    name = word if place == "name" else "x"
    message = f"Type your {word}" if place == "message" else "Which one?"
    schema = {"type": "object", "properties": {name: field}}
    params = {"message": message, "requestedSchema": schema}
    assert (await answer_elicitation(params, "s", user)).action == "decline"
    assert not user.asked


@pytest.mark.parametrize("word", ["spinning", "opinion", "color", "passage", "compass", "keyboard"])
async def test_what_only_resembles_a_secret_is_asked_for(word: str) -> None:
    user = User("green")
    assert (await form(user, **{word: {"type": "string", "title": word}})).action == "accept"
