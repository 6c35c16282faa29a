"""Messages go to known people only, once, and what became of one is said as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.capabilities.messages.tools import Delivery, Messages, Recipient
from agent.motor import call_context
from agent.types import ToolFailure
from tests.fakes.messenger import FakeMessenger
from tests.fakes.turns import MONDAY, a_turn

HOME = Recipient("telegram:42", ("Layla", "owner"))
SARA = Recipient("telegram:77", ("Sara", "سارة"))
SARA_TOO = Recipient("inapp:c-9", ("sara",))
WORKSPACE = Path("/nonexistent")
CONTEXT = call_context(a_turn(), MONDAY, "c7")


async def test_this_chat_is_the_default() -> None:
    messenger = FakeMessenger(HOME, SARA)
    assert (
        await Messages(messenger, WORKSPACE).send_message(CONTEXT, {"text": "on my way"})
        == "Sent to Layla (telegram:42)."
    )
    assert messenger.sent == [("send:t-1:c7", "telegram:42", "on my way")]
    thread = call_context(a_turn(session_key="telegram:42:5"), MONDAY, "c8")
    await Messages(messenger, WORKSPACE).send_message(thread, {"text": "x"})
    assert messenger.sent[-1][1] == "telegram:42"


@pytest.mark.parametrize("to", ["Sara", "sara", "سارة", "telegram:77", " Sara "])
async def test_a_known_person_is_found_by_name_or_address(to: str) -> None:
    messenger = FakeMessenger(HOME, SARA)
    await Messages(messenger, WORKSPACE).send_message(CONTEXT, {"text": "hello", "to": to})
    assert [address for _, address, _ in messenger.sent] == ["telegram:77"]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("Sar", '"Sar" is not known. Messages go to: Layla .telegram:42., Sara .telegram:77.'),
        ("telegram:78", "is not known"),
        ("telegram", "is not known"),
        ("SARA", "several chats: Sara .telegram:77., sara .inapp:c-9."),
    ],
)
async def test_nobody_else_gets_anything(to: str, said: str) -> None:
    messenger = FakeMessenger(HOME, SARA, *([SARA_TOO] if to == "SARA" else []))
    with pytest.raises(ToolFailure, match=said):
        await Messages(messenger, WORKSPACE).send_message(CONTEXT, {"text": "hello", "to": to})
    assert messenger.sent == []


async def test_a_chat_of_nobody_known_gets_nothing() -> None:
    messenger = FakeMessenger(SARA)
    with pytest.raises(ToolFailure, match="takes no messages of its own"):
        await Messages(messenger, WORKSPACE).send_message(CONTEXT, {"text": "hello"})


@pytest.mark.parametrize("text", ["", " \n", "x" * 20_001])
async def test_an_empty_or_endless_text_is_not_sent(text: str) -> None:
    messenger = FakeMessenger(HOME)
    with pytest.raises(ToolFailure):
        await Messages(messenger, WORKSPACE).send_message(CONTEXT, {"text": text})
    assert messenger.sent == []


async def test_what_became_of_it_is_said() -> None:
    messenger = FakeMessenger(SARA)
    messages = Messages(messenger, WORKSPACE)
    messenger.state = Delivery("waiting")
    assert "Do not send it again" in await messages.send_message(CONTEXT, {"text": "hello", "to": "Sara"})
    for delivery, said in (
        (Delivery("unknown", "the line broke."), "Nobody knows whether it reached Sara .telegram:77.: the line broke."),
        (Delivery("failed", "the chat is gone."), "It did not reach Sara .telegram:77.: the chat is gone."),
    ):
        messenger.state = delivery
        with pytest.raises(ToolFailure, match=said) as failure:
            await messages.send_message(CONTEXT, {"text": "hello", "to": "Sara"})
        assert not failure.value.transient


async def test_a_file_of_the_workspace_is_sent_with_its_caption(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "plan.pdf").write_bytes(b"pdf")
    messenger = FakeMessenger(HOME, SARA)
    tools = Messages(messenger, tmp_path)
    said = await tools.send_file(CONTEXT, {"path": "files/plan.pdf", "to": "Sara", "caption": "the plan"})
    assert said == "Sent to Sara (telegram:77)."
    assert messenger.sent == [("send:t-1:c7", "telegram:77", "the plan")]
    assert messenger.files == ["files/plan.pdf"]


@pytest.mark.parametrize(
    "args",
    [
        {"path": "../hudhud.db"},
        {"path": "/etc/passwd"},
        {"path": ".secret"},
        {"path": "files/none.pdf"},
        {"path": "files"},
        {"path": "files/link"},
        {"path": "files/plan.pdf", "caption": "x" * 1_025},
        {"path": "files/plan.pdf", "to": "telegram:99"},
    ],
)
async def test_nothing_else_is_sent(tmp_path: Path, args: dict[str, str]) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "files").mkdir(parents=True)
    (workspace / "files" / "plan.pdf").write_bytes(b"pdf")
    (workspace / ".secret").write_text("x")
    (tmp_path / "hudhud.db").write_text("x")
    (workspace / "files" / "link").symlink_to(tmp_path / "hudhud.db")
    messenger = FakeMessenger(HOME, SARA)
    with pytest.raises(ToolFailure):
        await Messages(messenger, workspace).send_file(CONTEXT, args)
    assert messenger.sent == []
