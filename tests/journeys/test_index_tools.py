"""The tools that ask the index, in a session."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.messages import CallResults
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]
NAMES = {"find_symbol", "references", "outline", "map"}


async def results(world: World, *calls: CallTool, **config: object) -> list[str]:
    """What these calls come to, each in a round of its own."""
    model = ScriptedModel([*calls, "done"])
    async with world.open(model, config={"repo.index": True, **config}) as app:
        await app.index.files()
        session = await app.sessions.start_session()
        await session.send_message("zzz")
        assert {tool.name for tool in model.requests[0].tools} >= NAMES
        return [
            result.text
            for message in model.last_request.messages
            if isinstance(message, CallResults)
            for result in message.results
        ]


@pytest.fixture
def shop(plain_world: World) -> World:
    plain_world.write(
        "shop/cart.py", "class Cart:\n    def total(self):\n        return self.tax\n\nC = Cart()\n"
    )
    plain_world.write("shop/mail.py", "from shop.cart import Cart\n# Cart\nx = Cart().total()\n")
    plain_world.write("notes.txt", "Cart\n")
    return plain_world


async def test_the_index_answers_in_a_session(shop: World) -> None:
    found, used, outline, mapped, missing, unknown = await results(
        shop,
        CallTool(name="find_symbol", args={"name": "Cart.total"}),
        CallTool(name="references", args={"name": "Cart"}),
        CallTool(name="outline", args={"path": "shop/cart.py"}),
        CallTool(name="map", args={"request": "tax of the cart"}),
        CallTool(name="outline", args={"path": "notes.txt"}),
        CallTool(name="find_symbol", args={"name": "nothing_such"}),
    )
    assert found == "shop/cart.py:2-3  function  def total(self)"
    assert used.splitlines() == [
        "shop/cart.py:1= class Cart:",
        "shop/cart.py:5: C = Cart()",
        "shop/mail.py:1: from shop.cart import Cart",
        "shop/mail.py:3: x = Cart().total()",
    ]
    assert outline.splitlines()[:2] == ["1-3\tclass Cart", "2-3\t  def total(self)"]
    assert mapped.startswith("shop/cart.py\n")
    assert "no source file" in missing
    assert unknown == "(no definition of 'nothing_such')"


async def test_a_file_that_may_not_be_read_is_in_no_answer(shop: World) -> None:
    answers = await results(
        shop,
        CallTool(name="find_symbol", args={"name": "Cart"}),
        CallTool(name="references", args={"name": "Cart"}),
        CallTool(name="map", args={"request": "tax of the cart"}),
        CallTool(name="outline", args={"path": "shop/cart.py"}),
        **{"permissions.deny": ["read(shop/cart.py)"]},
    )
    assert not any("class Cart" in answer or "shop/cart.py:" in answer for answer in answers)


async def test_without_an_index_the_tools_are_not_offered(shop: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with shop.open(model, config={"repo.index": True}) as app:
        session = await app.sessions.start_session()
        await session.send_message("hello")
        await app.index.files()
        await session.send_message("again")
    for request in model.requests:
        assert not NAMES & {tool.name for tool in request.tools}, "the prefix stays as it is"


async def test_a_run_that_stores_nothing_makes_no_index_though_a_model_asks_for_it(
    plain_world: World,
) -> None:
    model = ScriptedModel([CallTool(name="find_symbol", args={"name": "Cart"}), "done"])
    plain_world.write("cart.py", "class Cart: ...\n")
    async with plain_world.open(model, config={"repo.index": True}) as app:
        session = await app.sessions.start_session()
        await session.send_message("zzz")
        assert not app.places.index_of(app.project_path).exists(), "nothing is stored here"
    [result] = [
        result.text
        for message in model.last_request.messages
        if isinstance(message, CallResults)
        for result in message.results
    ]
    assert "no index is made" in result


async def test_references_are_found_of_names_that_are_no_plain_words(plain_world: World) -> None:
    plain_world.write("a.rb", "def valid?; end\nx = valid? # valid?\nvalid\n")
    plain_world.write("b.py", "T = 1\ndef f(x: T): ...\n# T\nTT = 2\n")
    plain_world.write("c.php", "<?php\n$total = 1;\necho $total; // $total\n$x = $total;\n")
    asked = [CallTool(name="references", args={"name": name}) for name in ("valid?", "T", "$x")]
    *found, whole = await results(
        plain_world, *asked, CallTool(name="references", args={"name": "$total"})
    )
    assert found[0].splitlines() == ["a.rb:1= def valid?; end", "a.rb:2: x = valid? # valid?"]
    assert found[1].splitlines() == ["b.py:1= T = 1", "b.py:2: def f(x: T): ..."]
    assert found[2].splitlines() == ["c.php:4: $x = $total;"]
    assert [line.split(" ")[0] for line in whole.splitlines()] == [
        "c.php:2:",
        "c.php:3:",
        "c.php:4:",
    ]
