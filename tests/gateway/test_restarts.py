"""Kills, stops and restarts of the whole program against a Bot API server: once in the log, once answered, in order."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from channels.telegram import polling as telegram_polling
from gateway import readlog
from tests.fakes.bot_api import BAD_GATEWAY, DROPPED_AFTER, BotApi, flood
from tests.fakes.clock import FakeClock
from tests.fakes.hub import crashed_copy
from tests.fakes.openai_server import OpenAiServer, Reply, text_reply
from tests.fakes.program import GUEST, OWNER, EchoProvider, Program, program, settings_for
from tests.fakes.waiting import until


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


async def test_an_update_that_comes_again_after_a_restart_is_one_message(tmp_path: Path, api: BotApi) -> None:
    """B24."""
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        api.push_text(OWNER, "/help", message_id=50)
        api.push_text(OWNER, "hello", message_id=51)
        await gateway.quiet()
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
    before = [message.text for message in api.sent]
    # The server never learnt that 500 and 501 were taken: it hands them out again, with one more behind them.
    _forget_offset(crashed)
    api.push({"message": api.message(OWNER, "/help", message_id=50)}, update_id=500)
    api.push({"message": api.message(OWNER, "hello", message_id=51)}, update_id=501)
    api.push({"message": api.message(OWNER, "and now?", message_id=52)}, update_id=502)
    async with program(crashed, api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        assert [message.text for message in api.sent][len(before) :] == ["re: and now?"]
        heard = [text for way, text in gateway.logged() if way == "in"]
        assert heard == ["/help", "hello", "and now?"]


def _forget_offset(home: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(home / "hudhud.db")
    connection.execute("DELETE FROM channel_fact")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("content", ["", "{", '{"offset": "x"}', '{"offset": 5, "at": "never"}'])
async def test_a_damaged_offset_answers_nothing_twice_and_warns_once(
    tmp_path: Path, api: BotApi, content: str, caplog: Any
) -> None:
    """B27."""
    texts = [f"m{n}" for n in range(20)]
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        for n, text in enumerate(texts):
            api.push({"message": api.message(OWNER, text, message_id=n + 1)}, update_id=480 + n)
        await gateway.quiet()
        await gateway.app.store.put_fact("telegram", "offset:4242", content)
    sent = len(api.sent)
    caplog.clear()
    for n, text in enumerate(texts):
        api.push({"message": api.message(OWNER, text, message_id=n + 1)}, update_id=480 + n)
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        assert len(api.sent) == sent
        assert [text for way, text in gateway.logged() if way == "in"] == texts
    assert sum("offset" in record.getMessage() for record in caplog.records) == 1


async def test_an_answer_that_was_not_sent_when_the_program_died_is_sent_once(tmp_path: Path, api: BotApi) -> None:
    """B26."""
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        # The program dies after the answer was written and before it was sent.
        gateway.app.outbox.put = lambda delivery: None
        api.push_text(OWNER, "hello")
        await until(lambda: _answered(gateway))
        assert gateway.sent() == []
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
    provider = EchoProvider()
    async with program(crashed, api, provider=provider) as gateway:
        await gateway.quiet()
        await until(lambda: gateway.sent() == ["re: hello"])
        await gateway.quiet()
        assert gateway.logged() == [("in", "hello"), ("out", "re: hello")]
        assert provider.prompts == []
    async with program(crashed, api, provider=provider) as gateway:
        await gateway.quiet()
    assert [message.text for message in api.sent] == ["re: hello"]


async def _answered(gateway: Program) -> bool:
    return bool(gateway.rows("SELECT 1 FROM delivery"))


async def test_the_message_is_on_disk_before_telegram_is_told(tmp_path: Path, api: BotApi, monkeypatch: Any) -> None:
    seen: list[tuple[int, list[tuple[Any, ...]]]] = []
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        forget = api._get_updates

        async def looks(parameters: Any) -> Any:
            if (parameters.get("offset") or 0) > 500:
                seen.append((parameters["offset"], gateway.rows("SELECT text FROM message WHERE role = 'user'")))
            return await forget(parameters)

        monkeypatch.setattr(api, "_get_updates", looks)
        api.push_text(OWNER, "hello")
        await gateway.quiet()
    assert seen[0] == (501, [("hello",)])


async def test_a_long_flood_wait_holds_up_its_chat_only_and_outlives_a_restart(tmp_path: Path, api: BotApi) -> None:
    """B30."""
    clock = FakeClock(datetime(2026, 11, 30, 8, 0, tzinfo=UTC))
    async with program(tmp_path / "h", api, provider=EchoProvider(), now=clock) as gateway:
        api.script("sendMessage", flood(149, OWNER))
        api.push_text(OWNER, "slow")
        await until(lambda: _delivery_states(gateway, ["retry"]))
        api.push_text(GUEST, "quick")
        await until(lambda: gateway.sent(GUEST) == ["re: quick"])
        await until(lambda: _delivery_states(gateway, ["retry", "sent"]))
        assert gateway.sent(OWNER) == []
        [shown] = await gateway.app.store.open_deliveries()
        assert shown.next_at is not None
        assert (shown.next_at - clock()).total_seconds() == pytest.approx(149, abs=1)
    clock.forward(seconds=150)
    async with program(tmp_path / "h", api, provider=EchoProvider(), now=clock) as gateway:
        await until(lambda: gateway.sent(OWNER) == ["re: slow"])
        await gateway.quiet()
    assert api.count("sendMessage") == 3


async def _delivery_states(gateway: Program, states: list[str]) -> bool:
    return [row[0] for row in gateway.rows("SELECT state FROM delivery ORDER BY state")] == states


async def test_a_line_that_breaks_after_the_send_is_unknown_and_never_sent_again(
    tmp_path: Path, api: BotApi, caplog: Any
) -> None:
    api.script("sendMessage", DROPPED_AFTER)
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        api.push_text(OWNER, "hello")
        await until(lambda: _delivery_states(gateway, ["unknown"]))
        await gateway.quiet()
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        assert await _delivery_states(gateway, ["unknown"])
    assert (api.count("sendMessage"), gateway.sent()) == (1, ["re: hello"])


async def test_a_server_that_refuses_connections_gets_the_reply_once_when_it_is_back(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("gateway.outbox.SEND_PAUSES_SECONDS", (0.01,))
    monkeypatch.setattr("gateway.supervise.CHANNEL_PAUSES_SECONDS", (0.01,))
    provider = EchoProvider()
    provider.gate.clear()
    async with BotApi() as first, program(tmp_path / "h", first, provider=provider) as gateway:
        first.push_text(OWNER, "hello")
        await until(lambda: bool(provider.prompts))
        await first.__aexit__()
        provider.gate.set()
        await until(lambda: _delivery_states(gateway, ["retry"]))
        async with BotApi(port=first.port, chats=first.chats) as second:
            gateway.api = second
            await until(lambda: _delivery_states(gateway, ["sent"]))
            await gateway.quiet()
            assert gateway.sent() == ["re: hello"]


async def test_a_gateway_in_front_that_fails_on_the_way_out_is_unknown(
    tmp_path: Path, api: BotApi, caplog: Any
) -> None:
    api.script("sendMessage", BAD_GATEWAY)
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        api.push_text(OWNER, "hello")
        await until(lambda: _delivery_states(gateway, ["unknown"]))
        await gateway.quiet()
    assert api.count("sendMessage") == 1


# Stops and kills while a turn runs


async def test_a_clean_stop_while_a_turn_runs_loses_neither_it_nor_what_waits_behind_it(
    tmp_path: Path, api: BotApi
) -> None:
    provider = EchoProvider()
    provider.gate.clear()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        gateway.app.queue._stop_seconds_max = 0.05
        api.push_text(OWNER, "A")
        await until(lambda: bool(provider.prompts))
        api.push_text(OWNER, "B")
        await until(lambda: not api.pending)
    assert gateway.sent() == []
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        _each_once(gateway, ["A", "B"])


async def test_a_stop_lets_a_turn_that_is_nearly_done_finish_and_leaves_the_next_for_the_start(
    tmp_path: Path, api: BotApi
) -> None:
    provider = EchoProvider()
    provider.gate.clear()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        api.push_text(OWNER, "A")
        await until(lambda: bool(provider.prompts))
        api.push_text(OWNER, "B")
        await until(lambda: not api.pending)
        stopping = asyncio.create_task(gateway.app.queue.close())
        await asyncio.sleep(0)
        provider.gate.set()
        await stopping
    assert await _replies(gateway) == ["re: A"]
    async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        assert gateway.sent() == ["re: A", "re: B"]
        assert [text for _, text in gateway.logged() if not text.startswith("re")] == ["A", "B"]


async def _replies(gateway: Program) -> list[str]:
    return [row[0] for row in gateway.rows("SELECT text FROM message WHERE role = 'assistant'")]


async def test_a_kill_while_a_turn_runs_loses_neither_it_nor_what_waits_behind_it(tmp_path: Path, api: BotApi) -> None:
    provider = EchoProvider()
    provider.gate.clear()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        api.push_text(OWNER, "A")
        await until(lambda: bool(provider.prompts))
        api.push_text(OWNER, "B")
        await until(lambda: not api.pending)
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
        gateway.app.queue._stop_seconds_max = 0.01
    async with program(crashed, api, provider=EchoProvider()) as gateway:
        await gateway.quiet()
        _each_once(gateway, ["A", "B"])


def _each_once(gateway: Program, texts: list[str]) -> None:
    """Every message is in the log once, and in exactly one reply, in order."""
    assert [text for way, text in gateway.logged() if way == "in"] == texts
    answers = "".join(gateway.sent())
    assert [answers.count(text) for text in texts] == [1] * len(texts)
    assert [answers.index(text) for text in texts] == sorted(answers.index(text) for text in texts)
    assert [row[0] for row in gateway.rows("SELECT DISTINCT state FROM message")] == ["answered"]


async def test_what_cannot_be_saved_promises_nothing(tmp_path: Path, api: BotApi, monkeypatch: Any) -> None:
    monkeypatch.setattr(telegram_polling, "ACCEPT_PAUSES_SECONDS", (0.01,))
    provider = EchoProvider()
    provider.gate.clear()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        api.push_text(OWNER, "A")
        await until(lambda: bool(provider.prompts))
        pages = await gateway.app.store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await gateway.app.store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall())
        api.push_text(OWNER, "B" * 50_000)
        await until(lambda: _degraded(gateway))
        assert gateway.sent() == []
        assert api.pending
        await gateway.app.store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
        provider.gate.set()
        await gateway.quiet()
        assert [text[:5] for text in gateway.sent()] == ["re: A", "re: B"]


async def _degraded(gateway: Program) -> bool:
    return (await gateway.channel("telegram"))["state"] == "degraded"


async def test_a_turn_over_its_time_is_told_and_those_behind_it_run_in_order(tmp_path: Path, api: BotApi) -> None:
    provider = EchoProvider()
    provider.gate.clear()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        gateway.app.queue._turn_seconds_max = 0.2
        api.push_text(OWNER, "A")
        await until(lambda: bool(provider.prompts))
        gateway.app.queue._turn_seconds_max = 60  # for the turns after this one
        api.push_text(OWNER, "B")
        api.push_text(OWNER, "C")
        await until(lambda: bool(gateway.sent()))
        provider.gate.set()
        await gateway.quiet()
        assert "took longer" in gateway.sent()[0]
        assert gateway.sent()[1:] == ["re: B\n\nC"]


# A tool that was running


async def test_a_call_that_was_running_at_a_kill_is_told_to_a_strict_model_and_not_run_again(
    tmp_path: Path, api: BotApi
) -> None:
    """The model asks for a tool; the program dies while it runs; the next start answers from what is known."""
    from tests.fakes.openai_server import call_reply

    asked: list[list[dict[str, Any]]] = []

    def answers(body: dict[str, Any]) -> Reply:
        asked.append(body["messages"])
        check_history(body["messages"])
        if len(asked) == 1:
            return call_reply(("T1", "memory_save", {"fact": "The falcon sleeps."}), text="I keep it.")
        return text_reply(f"answer {len(asked)}")

    async with OpenAiServer(answers) as server:
        settings = settings_for(
            api, model={"provider": "openai", "name": "m", "base_url": server.base_url, "api_key": "k"}
        )
        hold, begun = asyncio.Event(), asyncio.Event()
        async with program(tmp_path / "h", api, settings=settings) as gateway:
            saves: list[str] = []

            async def hangs(*args: Any) -> Any:
                saves.append("ran")
                begun.set()
                await hold.wait()

            gateway.app.library.introspect._knowledge.save = hangs  # type: ignore[method-assign]
            gateway.app.queue._stop_seconds_max = 0.01
            api.push_text(OWNER, "remember the falcon")
            await asyncio.wait_for(begun.wait(), 10)
            crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
        async with program(crashed, api, settings=settings) as gateway:
            await gateway.quiet()
            assert saves == ["ran"]
            [tool] = [message for message in asked[1] if message["role"] == "tool"]
            assert tool["tool_call_id"] == "T1"
            assert "interrupted, not known whether it ran" in tool["content"]
            api.push_text(OWNER, "hello")
            await gateway.quiet()
            assert any("interrupted, not known" in str(message["content"]) for message in asked[2])
            assert gateway.sent() == ["I keep it.\n\nanswer 2", "answer 3"]
            knowledge = crashed / "workspace" / "brain" / "hippocampus" / "knowledge"
            assert not knowledge.exists() or not list(knowledge.iterdir())


def check_history(messages: list[dict[str, Any]]) -> None:
    """What a strict service checks before it answers: each call is followed at once by its one result."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without a call"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls without a result: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting, f"calls without a result: {waiting}"


# A disk that fills up in the middle of a line


async def test_a_log_line_that_breaks_off_delays_the_answer_and_alerts_once(
    tmp_path: Path, api: BotApi, monkeypatch: Any, caplog: Any
) -> None:
    full = [True]
    whole = readlog.append_bytes

    def breaks_off(path: Path, data: bytes) -> None:
        if full[0]:
            whole(path, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, data)

    monkeypatch.setattr(readlog, "append_bytes", breaks_off)
    monkeypatch.setattr(readlog, "READLOG_RETRY_SECONDS", 0.01)
    provider = EchoProvider()
    async with program(tmp_path / "h", api, provider=provider) as gateway:
        api.push_text(OWNER, "hello")
        await until(lambda: "cannot be written" in caplog.text)
        assert provider.prompts == []
        full[0] = False
        await gateway.quiet()
        assert gateway.logged() == [("in", "hello"), ("out", "re: hello")]
        assert gateway.sent() == ["re: hello"]
        assert api.count("getMe") == 1
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1
