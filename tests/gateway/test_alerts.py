"""What a job says to its owner: held back at night, not repeated, by another way after a refusal, and answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.types import Prompt, ProviderError, StreamChunk, Usage
from gateway.alerts import quiet_until
from gateway.limits import RUN_TOKENS_MAX
from tests.fakes.bot_api import DROPPED_AFTER, BotApi
from tests.fakes.clock import FakeClock
from tests.fakes.program import OWNER, Program, said_last
from tests.fakes.waiting import until
from tests.gateway.test_scheduled_runs import clock, clockwork, due, ended

HOURLY = "## Hourly (0)\nname: watch\n\nWatch.\n"


class Says:
    """A model that gives these answers, one a call; it keeps the prompts."""

    name = "says"
    model = "says"
    local = True

    def __init__(self, *answers: str, usage: Usage | None = None) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []
        self._usage = usage or Usage(requests=1)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]:
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if answer == "fault":
            raise ProviderError("The model is ill.", transient=False)
        yield StreamChunk("text", text=answer)
        yield StreamChunk("usage", usage=self._usage)
        yield StreamChunk("stop", text="end")

    async def close(self) -> None:
        """There is nothing to close."""


async def hours(gateway: Program, at: FakeClock, count: int) -> None:
    for _ in range(count):
        await due(gateway, at, hours=1)


@pytest.mark.parametrize(
    ("hours", "at", "end"),
    [
        ("22:00-07:00", "2026-11-30T23:00", "2026-12-01T07:00"),
        ("22:00-07:00", "2026-11-30T06:59", "2026-11-30T07:00"),
        ("22:00-07:00", "2026-11-30T07:00", None),
        ("22:00-07:00", "2026-11-30T21:59", None),
        ("13:00-15:00", "2026-11-30T13:00", "2026-11-30T15:00"),
        ("13:00-15:00", "2026-11-30T15:00", None),
        ("13:00-13:00", "2026-11-30T13:00", None),
        # The end of summer time: 02:30 is shown twice, the quiet hours end at its first showing or at its second.
        ("22:00-02:30", "2027-10-31T01:00", "2027-10-31T02:30"),
    ],
)
def test_when_quiet_hours_end(hours: str, at: str, end: str | None) -> None:
    zone = ZoneInfo("Europe/Berlin")
    first, last = (time.fromisoformat(part) for part in hours.split("-"))
    found = quiet_until((first, last), datetime.fromisoformat(at).replace(tzinfo=zone), zone)
    assert (found and f"{found.astimezone(zone):%Y-%m-%dT%H:%M}") == end


async def test_what_is_said_in_quiet_hours_comes_as_one_message_afterwards_urgent_words_at_once(tmp_path: Path) -> None:
    at = clock()  # 11:00 in Riyadh
    jobs = "## Cron (0 12,13 * * *)\nname: watch\nquiet: 11:30-14:30\n\nWatch.\n\n"
    jobs += "## Daily (13:00)\nname: alarm\nurgent: yes\n\nx\n"
    model = Says("first", "second", "now", "third")
    options: dict[str, Any] = {"heartbeat": {"enabled": True, "quiet": "11:00-20:00"}}
    async with BotApi(chats={OWNER: "private"}) as api:
        async with clockwork(tmp_path / "h", api, at, jobs, provider=model, **options) as gateway:
            await due(gateway, at, hours=1)
            assert gateway.sent() == []
            await due(gateway, at, hours=1)
            assert len(gateway.sent()) == 1  # of `second` and `now`, which run side by side, the urgent one
            runs = await ended(gateway, 3)
            assert [run["reason"] for run in runs if run["name"] == "watch"] == ["held back: quiet hours"] * 2
            urgent = gateway.sent()
        # A restart forgets nothing that was held back.
        async with clockwork(tmp_path / "h", api, at, jobs, provider=model, **options) as gateway:
            await due(gateway, at, minutes=89)
            assert len(gateway.sent()) == 1
            await due(gateway, at, minutes=1)
            assert len(gateway.sent()) == 2
            together = gateway.sent()[1]
            assert "2 messages" in together
            said = [word for word in ("first", "second", "now") if word in together]
            assert said == [word for word in ("first", "second", "now") if word not in urgent[0]]
            await due(gateway, at, minutes=1)
            assert len(gateway.sent()) == 2


async def test_an_equal_alert_is_not_repeated_and_the_next_other_one_says_how_often_it_came(tmp_path: Path) -> None:
    at = clock()
    model = Says("Disk full", "disk  full", "HEARTBEAT_OK", "Disk full", "Mail is down", "Disk full")
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, HOURLY, provider=model) as gateway,
    ):
        await hours(gateway, at, 6)
        assert [text.splitlines()[0] for text in gateway.sent()] == ["Disk full", "Mail is down", "Disk full"]
        assert "2 more times" in gateway.sent()[1]
        assert "more times" not in gateway.sent()[2]
        reasons = [run["reason"] for run in await ended(gateway, 6)]
        assert reasons.count("equal to the last alert of this job") == 2


async def test_a_day_later_an_equal_alert_is_sent_again(tmp_path: Path) -> None:
    at = clock()
    jobs = "## Cron (0 11,23 * * *)\nname: watch\n\nWatch.\n"
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, jobs, provider=Says(*["Disk full"] * 4)) as gateway,
    ):
        for _ in range(4):
            await due(gateway, at, hours=12)
        assert [text.splitlines()[0] for text in gateway.sent()] == ["Disk full", "Disk full"]
        assert "1 more times" in gateway.sent()[1]


async def test_a_chat_that_refuses_gives_way_to_the_owners_next_channel_and_the_row_says_so(tmp_path: Path) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}, blocked={OWNER}) as api,
        clockwork(tmp_path / "h", api, at, HOURLY, provider=Says("Disk full")) as gateway,
    ):
        await due(gateway, at, hours=1)
        await until(lambda: bool(gateway.log("home", "inapp")))
        assert [line["text"] for line in gateway.log("home", "inapp")] == ["Disk full"]
        [run] = await ended(gateway)
        assert "sent to inapp:home, since telegram:7 refused" in run["reason"]
        assert dict(gateway.rows("SELECT channel, state FROM delivery")) == {"telegram": "failed", "inapp": "sent"}


async def test_what_may_have_arrived_is_tried_nowhere_else(tmp_path: Path) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, HOURLY, provider=Says("Disk full")) as gateway,
    ):
        api.script("sendMessage", DROPPED_AFTER)
        await due(gateway, at, hours=1)
        assert gateway.rows("SELECT channel, state FROM delivery") == [("telegram", "unknown")]


async def test_a_persons_answer_that_is_refused_goes_nowhere_else(tmp_path: Path) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, HOURLY, provider=Says("hello")) as gateway,
    ):
        api.blocked.add(OWNER)
        api.push_text(OWNER, "hello")
        await gateway.quiet()
        await until(lambda: gateway.rows("SELECT state FROM delivery") == [("failed",)])
        assert gateway.log("home", "inapp") == []


async def test_a_reply_to_an_alert_goes_on_in_the_runs_conversation(tmp_path: Path) -> None:
    at = clock()
    model = Says("Disk full", "It is /dev/sda.", "Hello.")
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, HOURLY, provider=model) as gateway,
    ):
        await due(gateway, at, hours=1)
        [run] = await ended(gateway)
        alert = api.sent[-1]
        quoted = {"message_id": alert.message_id, "date": 1_790_000_000, "chat": {"id": OWNER, "type": "private"}}
        api.push_text(OWNER, "Which one?", reply_to_message=quoted | {"text": alert.text})
        await gateway.quiet()
        found = await gateway.get(f"/api/conversations/{run['conversation']}")
        assert [message["text"].splitlines()[-1] for message in found["messages"]] == [
            "Watch.",
            "Disk full",
            "Which one?",
            "It is /dev/sda.",
        ]
        assert gateway.sent()[-1] == "It is /dev/sda."
        assert [message.role for message in model.prompts[1].messages] == ["user", "assistant", "user"]
        api.push_text(OWNER, "hello")
        await gateway.quiet()
        assert len((await gateway.get(f"/api/conversations/{run['conversation']}"))["messages"]) == 4


async def test_what_was_missed_for_good_is_told_once(tmp_path: Path) -> None:
    at = clock()
    jobs = "## Daily (12:00)\nname: noon\n\nx\n\n## Daily (13:00)\nname: later\n\ny\n"
    async with BotApi(chats={OWNER: "private"}) as api:
        async with clockwork(tmp_path / "h", api, at, jobs, provider=Says()) as gateway:
            pass
        at.forward(hours=9)
        async with clockwork(tmp_path / "h", api, at, jobs, provider=Says()) as gateway:
            await gateway.quiet()
            [told] = gateway.sent()
            assert "noon" in told
            assert "later" in told
        async with clockwork(tmp_path / "h", api, at, jobs, provider=Says()) as gateway:
            await due(gateway, at, minutes=1)
            assert len(gateway.sent()) == 1


async def test_a_channel_that_is_down_for_long_is_told_on_another_one_and_once_more_when_it_is_back(
    tmp_path: Path,
) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, "", provider=Says()) as gateway,
    ):
        health = gateway.app.health._channels["telegram"]  # pyright: ignore[reportPrivateUsage]
        await until(lambda: health.state == "connected")
        for state, minutes in (("unreachable", 5), ("unreachable", 25), ("unreachable", 25), ("connected", 5)):
            health.state, health.detail = state, "the line is cut"  # type: ignore[assignment]
            for _ in range(minutes // 5):
                at.forward(minutes=5)
                await gateway.app.runner.tick()
                await until(lambda: gateway.rows("SELECT count(*) FROM run WHERE outcome IS NULL") == [(0,)])
        await gateway.quiet()
        (down,) = [line["text"] for line in gateway.log("home", "inapp")]
        assert down.startswith("telegram has been down for 10 minutes: the line is cut")
        assert gateway.sent() == ["telegram is back."]
        told = [run["reason"].split(" since")[0] for run in (await gateway.get("/api/runs"))["runs"]]
        assert told == ["telegram is back", "telegram is down"]


async def test_a_run_sends_little_and_its_model_may_be_another(tmp_path: Path) -> None:
    at = clock()
    jobs = "## Hourly (0)\nname: a\nmodel: offline\n\nAre you connected?\n\n## Hourly (30)\nname: b\n\nLook.\n"
    model = Says("fine")
    async with clockwork(tmp_path / "h", None, at, jobs, provider=model) as gateway:
        await due(gateway, at, minutes=30)
        assert said_last(model.prompts[0].messages) == "[scheduled run: b]\nLook."
        await due(gateway, at, minutes=30)
        runs = await ended(gateway, 2)
        assert {run["outcome"] for run in runs} == {"ok"}
        assert len(model.prompts) == 1  # the other run went to the offline model


async def test_a_run_that_has_spent_its_tokens_makes_no_further_call(tmp_path: Path) -> None:
    at = clock()
    model = Says("fine", usage=Usage(requests=1, input_tokens=RUN_TOKENS_MAX))
    async with clockwork(tmp_path / "h", None, at, HOURLY, provider=model) as gateway:
        await due(gateway, at, hours=1)
        turn = (await ended(gateway))[0]["conversation"]
        assert turn
        spending = gateway.app.spending
        assert list(spending._runs.values()) == [RUN_TOKENS_MAX]  # pyright: ignore[reportPrivateUsage]


async def test_nothing_to_do_costs_no_model_call(tmp_path: Path) -> None:
    at = clock()
    model = Says()
    async with clockwork(tmp_path / "h", None, at, "## Every (30m)\nname: idle\n", provider=model) as gateway:
        for _ in range(48):
            await due(gateway, at, minutes=30)
        runs = (await gateway.get("/api/runs"))["runs"]
        assert {(run["outcome"], run["reason"]) for run in runs} == {("skipped", "the instruction is empty")}
        assert model.prompts == []


async def test_what_is_forgotten_of_a_run_is_forgotten_wherever_it_was_said(tmp_path: Path) -> None:
    at = clock()
    jobs = "## Cron (0 12,13 * * *)\nname: watch\n\nWatch.\n"
    options: dict[str, Any] = {"heartbeat": {"enabled": True, "quiet": "11:00-14:00"}}
    async with (
        BotApi(chats={OWNER: "private"}, blocked={OWNER}) as api,
        clockwork(tmp_path / "h", api, at, jobs, provider=Says("code 4711", "code 4712"), **options) as gateway,
    ):
        await hours(gateway, at, 3)
        await until(lambda: bool(gateway.log("home", "inapp")))
        [first, second] = sorted(await ended(gateway, 2), key=lambda run: run["due_at"])
        for run in (first, second):
            await gateway.app.library.remover.remove(run["conversation"], None)
        everything = gateway.rows(
            "SELECT text FROM message UNION ALL SELECT text FROM alert UNION ALL SELECT reason FROM run"
        )
        assert not [text for (text,) in everything if text and "471" in text]
