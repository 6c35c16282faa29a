"""`hudhud queue` and `hudhud status`: what waits and what did not arrive, with and without a running gateway."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from channels.message import Address, InboundMessage
from gateway.store import Store
from gateway.store.types import DeliveryState, NewMessage
from tests.fakes.terminal import Shell, Terminal

NOW = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
CHAT = Address("telegram", "7")


def fill(shell: Shell, state: DeliveryState = "unknown") -> str:
    """Puts a waiting message of Sami into the home, and a command whose answer is in `state`; the key of the answer."""

    async def work() -> str:
        store = Store(shell.home)
        await store.open()
        saved = await store.accept(_new("2", "/help", command="help"))
        delivery = await store.command_done(saved.seq, saved.conversation_id, CHAT, "An answer", False, NOW)
        await store.move_delivery(delivery, state, NOW, attempts=2, reason="the line broke", next_at=None)
        await store.accept(_new("1", "hello"))
        await store.close()
        return delivery.key

    return asyncio.run(work())


def _new(message_id: str, text: str, command: str | None = None) -> NewMessage:
    message = InboundMessage("telegram", "7", message_id, "7", "Sami", text, NOW)
    return NewMessage(message, "owner", "waiting", command, "idle", 0, False, None, False, NOW)


def test_what_waits_and_what_did_not_arrive(shell: Shell) -> None:
    shell.prepared("[agent]\ntimezone = 'Asia/Riyadh'\n")
    key = fill(shell)
    said = shell("queue", "list")
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines()]
    assert ["1", "telegram:7", "waiting", "2026-11-30", "14:00"] in lines
    assert [key, "telegram:7", "unknown", "tried", "2", "times:", "the", "line", "broke"] in lines


def test_the_list_in_json(shell: Shell) -> None:
    shell.prepared()
    key = fill(shell)
    found = shell("queue", "list", "--json").json
    (waiting,) = found["waiting"]
    assert datetime.fromisoformat(waiting.pop("since")) == NOW
    assert waiting == {"message_id": "1", "sessionKey": "telegram:7", "state": "waiting"}
    assert found["deliveries"] == [
        {
            "key": key,
            "channel": "telegram",
            "chat": "7",
            "state": "unknown",
            "attempts": 2,
            "next_at": None,
            "reason": "the line broke",
        }
    ]


def test_an_empty_queue_is_silent(shell: Shell) -> None:
    said = shell.prepared()("queue", "list")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_a_reply_is_sent_again_at_the_next_start_when_no_gateway_runs(shell: Shell) -> None:
    shell.prepared()
    key = fill(shell)
    said = shell("queue", "retry", key)
    assert (said.code, said.out, said.err) == (0, "", "")
    (delivery,) = shell("queue", "list", "--json").json["deliveries"]
    assert delivery["state"] == "retry"
    assert delivery["next_at"] is not None
    assert delivery["attempts"] == 2


def test_a_reply_is_sent_again_by_the_running_gateway(shell: Shell) -> None:
    shell.prepared()
    key = fill(shell, "failed")
    states: list[str] = []
    tried = threading.Event()

    def note(kind: str, data: Mapping[str, Any]) -> None:
        if kind == "status" and data.get("delivery") == key:
            states.append(data["state"])
            if len(states) == 3:
                tried.set()

    with shell.gateway() as gateway:
        gateway.app.observers.add(note)
        assert shell("queue", "retry", key, "--json").json == {"key": key, "state": "retry"}
        # Its channel is off, so the try itself ends in `retry` again.
        assert tried.wait(30)
        assert states == ["retry", "sending", "retry"]
        assert shell("queue", "retry", "nothing").code == 3


def test_what_was_sent_is_not_sent_again(shell: Shell) -> None:
    shell.prepared()
    key = fill(shell, "sent")
    assert shell("queue", "retry", key).code == 3
    assert shell("queue", "drop", key).code == 3
    with shell.gateway():
        assert shell("queue", "retry", key).code == 3


def test_a_waiting_message_is_dropped_before_it_is_answered(shell: Shell) -> None:
    shell.prepared()
    fill(shell)
    assert shell("queue", "drop", "1", "--json").json == {"id": "1", "state": "cancelled"}
    assert shell("queue", "list", "--json").json["waiting"] == []
    assert shell("queue", "drop", "1").code == 3


def test_an_ended_reply_is_taken_off_the_list(shell: Shell) -> None:
    shell.prepared()
    key = fill(shell)
    assert shell("queue", "drop", key).code == 0
    assert shell("queue", "list", "--json").json["deliveries"] == []


def test_a_reply_on_its_way_is_not_dropped(shell: Shell) -> None:
    shell.prepared()
    assert shell("queue", "drop", fill(shell, "retry")).code == 3


def test_the_state_of_the_gateway(shell: Shell) -> None:
    shell.prepared()
    shell.write("workspace/heartbeat.md", "## Daily (08:00)\nname: morning\nWhat is on today?\n")
    with shell.gateway() as gateway:
        said = shell("status")
        assert said.code == 0
        assert f"page      {gateway.app.server.address}" in said.out
        assert "inapp" in said.out
        assert "connected" in said.out
        assert "queue     empty" in said.out
        assert max(map(len, said.out.splitlines())) <= 80
        found = shell("status", "--json").json
    assert {"version", "uptime_seconds", "queue", "channels", "next_jobs", "index"} <= set(found)


def test_a_fresh_link_opens_the_page(shell: Shell) -> None:
    with shell.prepared().gateway() as gateway:
        said = shell("status", "--link")
        assert said.code == 0
        assert said.out.startswith(f"{gateway.app.server.address}/?code=")
        assert said.out.count("\n") == 1
        again = shell("status", "--link", "--json").json["link"]
        assert again != said.out.strip()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(said.out.strip(), timeout=30) as page:
            assert page.status == 200


def test_a_gateway_without_a_page_cannot_be_asked(shell: Shell) -> None:
    shell.prepared("[channels.inapp]\nenabled = false\n")
    with shell.gateway():
        said = shell("status")
        assert said.code == 4
        assert "cannot be asked" in said.err
        assert shell("queue", "list").code == 0
        assert shell("chat", "hello").code == 1


def test_a_gateway_that_was_killed_counts_as_not_running(shell: Shell) -> None:
    shell.prepared()
    shell.write("running.json", '{"pid": 1, "address": "http://127.0.0.1:9", "token": "x"}')
    assert shell("status").code == 4


def test_at_a_terminal_nothing_is_wider_than_it_is(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    shell.prepared()
    fill(shell)
    terminal = at_terminal("queue", "list")
    assert terminal.ended() == 0
    assert "tried 2 times: the line broke\n" in terminal.shown
    assert max(map(len, terminal.shown.splitlines())) <= 80
