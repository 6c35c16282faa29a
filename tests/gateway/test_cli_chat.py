"""`hudhud chat`: through the running gateway, or right here when none runs."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from channels.message import InboundMessage
from gateway.cli_chat import Answer, ask
from gateway.cli_lines import Event
from gateway.cli_output import Wrap, wrapped
from gateway.client import Json
from gateway.store import Store
from gateway.store.types import NewMessage
from tests.fakes.openai_server import (
    HANG,
    RELEASE,
    OpenAiServer,
    Reply,
    call_reply,
    delta,
    error_reply,
    sse,
    text_reply,
)
from tests.fakes.terminal import FREE_PORT, Shell, Terminal

FACT = "remember that my passport is in the blue folder"


def test_one_message_through_the_running_gateway(shell: Shell) -> None:
    with shell.prepared().gateway() as gateway:
        said = shell("chat", FACT)
        assert said.code == 0
        assert "my passport is in the blue folder" in said.out
        assert said.err == ""
        status = gateway.do(gateway.app.backend.status())
        assert status["queue"]["waiting"] == 0
    assert [c["message_count"] for c in shell("conversations", "list", "--json").json["conversations"]] == [2]


def test_one_message_without_a_gateway_is_answered_and_kept_the_same_way(shell: Shell) -> None:
    shell.prepared()
    assert shell("chat", FACT).code == 0
    said = shell("chat", "where is my passport?")
    assert said.code == 0
    assert "blue folder" in said.out
    assert said.err == ""
    assert [c["message_count"] for c in shell("conversations", "list", "--json").json["conversations"]] == [4]
    assert list((shell.home / "workspace" / "readlog").rglob("*.jsonl"))


@pytest.mark.parametrize("with_gateway", [True, False])
def test_json_is_the_saved_answer_and_its_conversation(shell: Shell, with_gateway: bool) -> None:
    shell.prepared()
    if with_gateway:
        with shell.gateway():
            found = shell("chat", FACT, "--json").json
    else:
        found = shell("chat", FACT, "--json").json
    assert found["message"]["role"] == "assistant"
    assert found["message"]["n"] == 2
    messages = shell("conversations", "read", found["conversation"], "--json").json["messages"]
    assert messages[1]["text"] == found["message"]["text"]
    assert [call["name"] for call in messages[1]["tool_calls"]] == ["memory_save"]


def test_a_message_may_be_piped_in_and_goes_to_the_same_conversation(shell: Shell) -> None:
    with shell.prepared().gateway():
        first = shell("chat", "--json", stdin=f"{FACT}\n").json
        second = shell("chat", "--json", "where is my passport?").json
    assert first["conversation"] == second["conversation"]


def test_a_command_is_answered_like_a_message(shell: Shell) -> None:
    with shell.prepared().gateway():
        said = shell("chat", "/help")
    assert said.code == 0
    assert "/status" in said.out


def test_an_empty_message_is_wrong_use(shell: Shell) -> None:
    for text in ("", "  \n"):
        assert shell.prepared()("chat", text).code == 2


def settings_for(server: OpenAiServer) -> str:
    return f'{FREE_PORT}[model]\nprovider = "openai"\nname = "m"\napi_key = "k"\nbase_url = "{server.base_url}"\n'


async def test_an_answer_that_could_not_be_made_is_said_plainly_and_fails(shell: Shell) -> None:
    async with OpenAiServer([error_reply(401)]) as server:
        shell.prepared(settings_for(server))
        said = await asyncio.to_thread(shell, "chat", "hello")
    assert said.code == 1
    assert said.out.strip()
    assert "Traceback" not in said.out + said.err


async def test_the_answer_is_shown_as_it_comes(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    whole = text_reply("The first half. The second half.")
    async with OpenAiServer([Reply((sse(delta(content="The first half. ")), RELEASE, *whole.steps))]) as server:
        shell.prepared(settings_for(server))
        terminal = at_terminal("chat", "hello")
        await asyncio.to_thread(terminal.wait_for, "The first")
        assert "second" not in terminal.shown
        await server.release()
        assert await asyncio.to_thread(terminal.ended) == 0
    assert "The second half." in terminal.shown


@pytest.mark.parametrize("with_gateway", [True, False])
async def test_interrupting_an_answer_stops_it_and_the_chat_goes_on(
    shell: Shell, at_terminal: Callable[..., Terminal], with_gateway: bool
) -> None:
    endless = Reply((sse(delta(content="On and on. ")), HANG))
    async with OpenAiServer([endless, text_reply("A short one.")]) as server:
        shell.prepared(settings_for(server))
        with shell.gateway() if with_gateway else contextlib.nullcontext():
            terminal = at_terminal("chat")
            await asyncio.to_thread(terminal.wait_for, "› ")
            terminal.type("go\n")
            await asyncio.to_thread(terminal.wait_for, "On and")
            terminal.type("\x03")
            await server.client_left()
            await asyncio.to_thread(terminal.wait_for, "^C\n\n› ")
            terminal.type("again\n")
            await asyncio.to_thread(terminal.wait_for, "A short one.")
            await asyncio.to_thread(terminal.wait_for, "› ")
            terminal.type("\x04")
            assert await asyncio.to_thread(terminal.ended) == 0


def saving() -> list[Reply]:
    """A model that wants to save a fact, and then says that it is done."""
    return [call_reply(("c1", "memory_save", {"fact": "The key is under the mat."})), text_reply("That was it.")]


def asking(server: OpenAiServer) -> str:
    return f'{settings_for(server)}[safety]\nconfirm = "always"\n'


@pytest.mark.parametrize("with_gateway", [True, False])
@pytest.mark.parametrize(("typed", "outcome"), [("y", "success"), ("no", "denied"), ("\x04", "denied")])
async def test_consent_is_given_or_refused_at_the_terminal(
    shell: Shell, at_terminal: Callable[..., Terminal], with_gateway: bool, typed: str, outcome: str
) -> None:
    async with OpenAiServer(saving()) as server:
        shell.prepared(asking(server))
        with shell.gateway() if with_gateway else contextlib.nullcontext():
            terminal = at_terminal("chat", "save this: the key is under the mat")
            await asyncio.to_thread(terminal.wait_for, "Asked by Owner.")
            await asyncio.to_thread(terminal.wait_for, "    fact: The key is under the mat.\n")
            await asyncio.to_thread(terminal.wait_for, "Run it? [y/N] ")
            terminal.type(typed if typed == "\x04" else f"{typed}\n")
            await asyncio.to_thread(terminal.wait_for, "That was it.")
            assert await asyncio.to_thread(terminal.ended) == 0
    (name,) = [c["id"] for c in (await json_of(shell, "conversations", "list"))["conversations"]]
    messages = (await json_of(shell, "conversations", "read", name))["messages"]
    assert [call["outcome"] for call in messages[1]["tool_calls"]] == [outcome]


async def json_of(shell: Shell, *arguments: str) -> Json:
    return (await asyncio.to_thread(shell, *arguments, "--json")).json


@pytest.mark.parametrize("with_gateway", [True, False])
async def test_where_nobody_can_be_asked_the_answer_is_no_at_once(shell: Shell, with_gateway: bool) -> None:
    async with OpenAiServer(saving()) as server:
        shell.prepared(asking(server))
        with shell.gateway() if with_gateway else contextlib.nullcontext():
            said = await asyncio.to_thread(shell, "chat", "save this", "--json")
    assert said.code == 0
    messages = (await json_of(shell, "conversations", "read", said.json["conversation"]))["messages"]
    assert [call["outcome"] for call in messages[1]["tool_calls"]] == ["denied"]
    assert "no terminal to ask at" in said.err


def test_without_a_gateway_what_waits_for_other_channels_is_left_alone(shell: Shell) -> None:
    shell.prepared()

    async def wait_for_the_gateway() -> None:
        store = Store(shell.home)
        await store.open()
        now = datetime.now(UTC)
        message = InboundMessage("telegram", "7", "1", "7", "Sami", "hello", now)
        await store.accept(NewMessage(message, "owner", "waiting", None, "idle", 0, False, None, False, now))
        await store.close()

    asyncio.run(wait_for_the_gateway())
    assert shell("chat", FACT).code == 0
    waiting = shell("queue", "list", "--json").json["waiting"]
    assert [(item["sessionKey"], item["state"]) for item in waiting] == [("telegram:7", "waiting")]


class ForgetfulLine:
    """A `Line` that loses what happened after the message was saved; a sign of life is all it has."""

    def __init__(self, *answers: str) -> None:
        roles = ["user", *("assistant" for _ in answers)]
        self._saved: list[Json] = [
            {"n": n, "id": f"m{n}", "role": role, "text": text, "state": "answered", "flags": []}
            for n, (role, text) in enumerate(zip(roles, ["hello", *answers], strict=True), start=1)
        ]

    def post(self, text: str, conversation: str | None) -> tuple[str, str]:
        return "m1", "c1"

    def events(self) -> Iterator[Event]:
        yield "message", {"conversation": "c2", "message": {"id": "m1", "n": 5}}
        yield "message", {"conversation": "c1", "message": self._saved[0]}
        yield "", {}

    def messages(self, conversation: str, first: int) -> list[Json]:
        return self._saved[first - 1 :]

    def consent(self, question_id: str, allow: bool) -> bool:
        return False

    def stop(self, conversation: str) -> None: ...

    def renew(self) -> None: ...

    def close(self) -> None: ...


def test_an_answer_whose_event_was_lost_is_read_from_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(ForgetfulLine("Good morning."), "hello", None, Answer(live=False))
    assert capsys.readouterr().out == "Good morning.\n"
    assert answer.message is not None
    assert answer.message["n"] == 2


def test_a_chat_in_the_terminal(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    shell.prepared()
    with shell.gateway():
        terminal = at_terminal("chat")
        terminal.wait_for("› ")
        terminal.type(f"{FACT}\n")
        terminal.wait_for("· memory_save")
        terminal.wait_for("Saved")
        terminal.type("/new\n")
        terminal.wait_for("A new conversation begins")
        terminal.type("where is my passport?\n")
        terminal.wait_for("From memory")
        terminal.wait_for("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    counts = [c["message_count"] for c in shell("conversations", "list", "--json").json["conversations"]]
    assert sorted(counts) == [2, 4]


def test_a_chat_in_the_terminal_without_a_gateway(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    shell.prepared()
    terminal = at_terminal("chat")
    terminal.wait_for("› ")
    terminal.type(f"{FACT}\n")
    terminal.wait_for("Saved")
    terminal.wait_for("\n› ")
    terminal.type("/quit\n")
    assert terminal.ended() == 0


def test_text_of_others_cannot_steer_the_terminal(shell: Shell) -> None:
    said = shell.prepared()("chat", "remember that \x1b[31mred\x1b]0;title\x07 is \u202ereversed")
    assert said.code == 0
    assert "red" in said.out
    assert not re.search("[\x1b\x07\u202e]", said.out)


def test_lines_break_between_words_however_the_text_comes() -> None:
    text = "  one two\n    three four five\n\nsix"
    lines = ["  one two", "    three", "four five", "", "six"]
    assert wrapped(text, 9) == lines
    wrap = Wrap(9)
    assert ("".join(wrap.feed(letter) for letter in text) + wrap.rest()).split("\n") == lines


def test_wide_letters_count_twice_and_long_words_stay_whole() -> None:
    assert wrapped("ab 漢字 漢字", 7) == ["ab 漢字", "漢字"]
    assert wrapped("a https://example.org/long b", 10) == ["a https://example.org/long", "b"]
