"""The line: linking, losing it, losing the account, and ending cleanly. Each state has its remedy."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from channels.channel import ChannelDown
from channels.whatsapp.limits import CODE_SECONDS_MAX, CONNECT_SECONDS_MAX, RECONNECT_SECONDS_MAX, SILENCE_SECONDS
from channels.whatsapp.states import Churn, send_error
from tests.channels.whatsapp.conftest import Rig, outbound
from tests.fakes.channel_ports import Clock
from tests.fakes.waiting import until
from tests.fakes.whatsapp import OWNER, PROTO, event


def node() -> Any:
    return PROTO.Node(Tag="failure")


DOWN: list[tuple[str, Any]] = [
    ("logged_out", PROTO.LoggedOut(OnConnect=True, Reason=2)),
    ("logged_out", PROTO.ConnectFailure(Reason=4, Message="", Raw=node())),
    ("replaced", PROTO.StreamReplaced()),
    ("banned", PROTO.TemporaryBan(Code=4, Expire=7200)),
    ("banned", PROTO.ConnectFailure(Reason=3, Message="", Raw=node())),
    ("outdated", PROTO.ClientOutdated()),
    ("outdated", PROTO.ConnectFailure(Reason=6, Message="", Raw=node())),
]


@pytest.mark.parametrize(("state", "what"), DOWN)
async def test_what_nobody_can_retry_is_said_and_not_retried(rig: Rig, state: str, what: Any) -> None:
    """B52 and its kin."""
    channel = rig.channel()
    rig.platform.push(what)
    down = await rig.down(channel)
    assert (down.state, down.terminal) == (state, True)
    assert down.remedy
    assert all(client.stopped for client in rig.platform.clients)
    # Nor does a send open the line again.
    with pytest.raises(ChannelDown) as caught:
        await channel.send(outbound(OWNER, "hello?"))
    assert caught.value.state == state
    assert len(rig.platform.clients) == 1


async def test_a_refusal_for_now_is_retried(rig: Rig) -> None:
    rig.platform.push(PROTO.ConnectFailure(Reason=10, Message="busy", Raw=node()))
    down = await rig.down()
    assert (down.state, down.terminal) == ("unreachable", False)


async def test_a_ban_says_for_how_long(rig: Rig) -> None:
    rig.platform.push(PROTO.TemporaryBan(Code=4, Expire=7200))
    down = await rig.down()
    assert "2.0 hours" in down.detail
    assert "same message" in down.detail


async def test_a_dial_that_fails_is_unreachable(rig: Rig) -> None:
    rig.platform.dial_error = "failed to dial whatsapp web websocket: lookup web.whatsapp.com: no such host"
    down = await rig.down()
    assert (down.state, down.terminal) == ("unreachable", False)
    assert "no such host" in down.detail


async def test_a_session_that_cannot_be_read_is_no_matter_of_the_network(rig: Rig) -> None:
    rig.platform.dial_error = "failed to upgrade database: file is not a database"
    down = await rig.down()
    assert down.terminal
    assert "logout whatsapp" in down.remedy


async def test_a_dial_without_an_answer_ends(rig: Rig) -> None:
    rig.platform.answers = False
    task = asyncio.create_task(rig.down())
    await until(lambda: CONNECT_SECONDS_MAX in rig.clock.sleeps)
    rig.clock.advance(CONNECT_SECONDS_MAX)
    assert (await task).state == "unreachable"


async def test_a_line_that_breaks_is_got_back_by_the_library(rig: Rig) -> None:
    async with rig.listening():
        client = await rig.platform.until_up()
        await rig.hear(PROTO.Disconnected(status=True))
        await until(lambda: rig.health.states[-1][0] == "degraded")
        rig.platform.push_to(client, PROTO.Connected(status=True))
        await until(lambda: rig.health.states[-1][0] == "connected")
        await rig.hear(event("after it", "M1"))
    assert rig.inbox.texts == ["after it"]
    assert len(rig.platform.clients) == 1


async def test_a_line_that_stays_away_is_given_up(rig: Rig) -> None:
    task = asyncio.create_task(rig.down())
    await until(lambda: any(state[0] == "connected" for state in rig.health.states))
    rig.platform.push(PROTO.Disconnected(status=True))
    await until(lambda: RECONNECT_SECONDS_MAX in rig.clock.sleeps)
    rig.clock.advance(RECONNECT_SECONDS_MAX)
    assert (await task).state == "unreachable"


async def test_silence_is_asked_about_before_it_counts_as_death(rig: Rig) -> None:
    task = asyncio.create_task(rig.down())
    await until(lambda: SILENCE_SECONDS in rig.clock.sleeps)
    heard = rig.health.receives
    rig.clock.advance(SILENCE_SECONDS)
    await until(lambda: rig.health.receives > heard)
    assert not task.done()
    await until(lambda: rig.clock.sleeps.count(SILENCE_SECONDS) == 2)
    rig.platform.answers = False
    rig.clock.advance(SILENCE_SECONDS)
    assert (await task).state == "unreachable"


async def test_a_line_that_does_not_answer_is_degraded_until_it_does(rig: Rig) -> None:
    async with rig.listening():
        await rig.hear(PROTO.KeepAliveTimeout(ErrorCount=2, LastSuccess=0))
        await until(lambda: rig.health.states[-1][0] == "degraded")
        await rig.hear(PROTO.KeepAliveRestored())
        await until(lambda: rig.health.states[-1][0] == "connected")


async def test_a_probe_asks_now(rig: Rig) -> None:
    channel = rig.channel()
    with pytest.raises(ChannelDown):
        await channel.probe()
    async with rig.listening(channel):
        await channel.probe()
        rig.platform.answers = False
        with pytest.raises(ChannelDown):
            await channel.probe()


# B51: two programs, one session


def test_a_connection_counts_once_however_often_it_is_closed() -> None:
    churn = Churn()
    clock = Clock()
    said: list[bool] = []
    for _ in range(6):
        churn.opened(clock.now())
        clock.advance(5)
        said += [churn.closed(clock.now()), churn.closed(clock.now())]
        clock.advance(4)
    assert said == [False] * 10 + [True, False]


def test_a_stable_connection_begins_the_count_anew() -> None:
    churn = Churn()
    clock = Clock()
    for lasts in (5, 5, 5, 5, 5, 61, 5, 5, 5):
        churn.opened(clock.now())
        clock.advance(lasts)
        assert not churn.closed(clock.now())


async def test_two_programs_that_fight_over_a_session_end_it(rig: Rig) -> None:
    task = asyncio.create_task(rig.down())
    client = await rig.platform.until_up()
    await rig.platform.until_taken()
    for number in range(6):
        rig.platform.push_to(client, PROTO.Disconnected(status=True), PROTO.Disconnected(status=True))
        if number < 5:
            rig.platform.push_to(client, PROTO.Connected(status=True))
    down = await task
    assert (down.state, down.terminal) == ("replaced", True)
    assert client.stopped


# linking


async def test_without_a_link_nothing_is_dialled(rig: Rig) -> None:
    rig.unpair()
    down = await rig.down()
    assert (down.state, down.terminal) == ("logged_out", True)
    assert "hudhud channels link whatsapp" in down.remedy
    assert rig.platform.clients == []


async def test_a_link_by_qr(rig: Rig) -> None:
    rig.unpair()
    channel = rig.channel()
    channel.link(None)
    assert channel.link_state.state == "starting"
    async with asyncio.timeout(10):
        task = asyncio.create_task(channel.run(rig.inbox))
        client = await rig.platform.until_up()
        await client.show_qr("2@first")
        await until(lambda: channel.link_state.qr == "2@first")
        await client.show_qr("2@second")
        await until(lambda: channel.link_state.qr == "2@second")
        await client.pair()
        await until(lambda: channel.link_state.state == "linked")
    assert channel.link_state.qr is None
    assert json.loads(rig.memory.values["account"])["ids"] == ["15550001111@s.whatsapp.net", "99887766554433@lid"]
    task.cancel()
    await asyncio.wait({task})
    async with rig.listening():
        pass  # The next start needs no code.


async def test_a_link_by_code(rig: Rig) -> None:
    rig.unpair()
    channel = rig.channel()
    channel.link("+1 555 000 1111")
    task = asyncio.create_task(channel.run(rig.inbox))
    client = await rig.platform.until_up()
    await client.show_qr("2@first")
    await until(lambda: channel.link_state.code == "CODE-1111")
    assert channel.link_state.qr is None
    task.cancel()
    await asyncio.wait({task})


def test_a_wrong_number_is_refused(rig: Rig) -> None:
    with pytest.raises(ValueError, match="country code"):
        rig.channel().link("0555")


async def test_codes_that_nobody_used_are_said_to_be_gone(rig: Rig) -> None:
    rig.unpair()
    channel = rig.channel()
    channel.link(None)
    task = asyncio.create_task(rig.down(channel))
    client = await rig.platform.until_up()
    await client.show_qr("2@first")
    await until(lambda: CODE_SECONDS_MAX in rig.clock.sleeps)
    rig.clock.advance(CODE_SECONDS_MAX)
    assert (await task).state == "logged_out"
    assert channel.link_state.state == "expired"


async def test_a_phone_that_forgot_the_device_is_no_request_to_link(rig: Rig) -> None:
    rig.platform.is_paired = False
    task = asyncio.create_task(rig.down())
    client = await rig.platform.until_up()
    await client.show_qr("2@unasked")
    assert (await task).state == "logged_out"


async def test_after_a_logout_it_can_be_linked_again_at_once(rig: Rig) -> None:
    """B52, B55."""
    channel = rig.channel()
    task = asyncio.create_task(rig.down(channel))
    await until(lambda: any(state[0] == "connected" for state in rig.health.states))
    assert await channel.logout()
    assert (await task).state == "logged_out"
    assert rig.platform.logouts == 1
    assert all(client.stopped for client in rig.platform.clients)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("whatsapp")]
    assert not (rig.home / "whatsapp" / "auth").exists()
    channel.link(None)
    again = asyncio.create_task(channel.run(rig.inbox))
    client = await rig.platform.until_up()
    await client.show_qr("2@again")
    await until(lambda: channel.link_state.qr == "2@again")
    again.cancel()
    await asyncio.wait({again})


async def test_a_logout_without_a_line_forgets_the_session_here(rig: Rig) -> None:
    rig.platform.dial_error = "failed to dial whatsapp web websocket: no such host"
    channel = rig.channel()
    assert not await channel.logout()
    assert not (rig.home / "whatsapp" / "auth").exists()
    assert (await rig.down(channel)).state == "logged_out"


# the end


async def test_a_connect_that_never_returns_holds_up_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """B55."""

    async def forever(_self: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("tests.fakes.whatsapp.FakeClient.connect", forever)
    task = asyncio.create_task(rig.channel().run(rig.inbox))
    await until(lambda: bool(rig.platform.clients))
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({task})
    assert task.cancelled()
    assert rig.platform.clients[0].stopped


async def test_the_session_folder_is_for_its_owner_alone(rig: Rig) -> None:
    async with rig.listening():
        assert (rig.home / "whatsapp" / "auth").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("timed out waiting for message send response", "SendUnknown"),
        ("websocket disconnected before message send returned response", "SendUnknown"),
        ("failed to send message node: something", "SendUnknown"),
        ("server returned error 429", "SendRetry"),
        ("server returned error 503", "SendRetry"),
        ("server returned error 404", "SendRefused"),
        ("websocket not connected", "SendRetry"),
        ("failed to get device list: info query returned status 500", "SendRetry"),
        ("can't send message to unknown server x", "SendRefused"),
    ],
)
def test_a_failed_send_is_what_its_words_say(words: str, kind: str) -> None:
    error = send_error(words, ("1",))
    assert type(error).__name__ == kind
    assert error.sent_ids == ("1",)
