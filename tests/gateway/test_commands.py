"""Commands are typed with a slash; whatever else a person writes is a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands import COMMANDS, Request, parse, run
from gateway.sentences import Language
from heartbeat.types import CannotRun


class Desk:
    """`gateway.commands.Desk`; `stops` are the sessions that were to be stopped, `runs` whether a turn ran."""

    def __init__(self, runs: bool = True) -> None:
        self.runs = runs
        self.stops: list[str] = []
        self.started: list[dict[str, str]] = []

    async def stop(self, session_key: str, guest: str | None = None) -> bool:
        self.stops.append(session_key)
        return self.runs

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None) -> None:
        if name == "busy":
            raise CannotRun("`busy` is still running.")
        if name != "report":
            raise LookupError(name)
        self.started.append(dict(arguments or {}))

    async def status(self) -> dict[str, Any]:
        return {
            "uptime_seconds": 93_784,
            "model": "offline",
            "queue": {"waiting": 2, "deliveries": 1},
            "channels": [
                {"channel": "telegram", "enabled": True, "state": "unreachable", "detail": "no network"},
                {"channel": "inapp", "enabled": False, "state": "off", "detail": ""},
            ],
        }


async def answer(text: str, *, language: Language = "en", is_owner: bool = True, desk: Desk | None = None) -> str:
    found = parse(text)
    assert found is not None
    return await run(found[0], desk or Desk(), Request("telegram:7", "7", found[1], is_owner, language))


@given(st.text())
def test_bare_words_are_never_a_command(text: str) -> None:
    if not text.startswith("/"):
        assert parse(text) is None


@given(st.sampled_from(sorted(COMMANDS)), st.text(min_size=1), st.text(max_size=3))
def test_a_command_stands_at_the_very_beginning_and_ends_with_its_word(name: str, before: str, after: str) -> None:
    if not f"{before}/{name}".startswith("/"):
        assert parse(f"{before}/{name} {after}") is None
    for text in (f" /{name}", f"//{name}", f"/{name}x", f"/{name}/", f"/{name}-{after}", f"/ {name}"):
        assert parse(text) is None


@given(st.from_regex(r"/[A-Za-z_]+", fullmatch=True))
def test_a_slash_word_that_is_in_no_table_is_a_message(text: str) -> None:
    assert (parse(text) is None) == (text[1:].lower() not in COMMANDS)


@given(st.sampled_from(sorted(COMMANDS)), st.text(min_size=1), st.sampled_from(" \n\t"))
def test_the_rest_is_the_argument_whatever_it_is(name: str, argument: str, space: str) -> None:
    found = parse(f"/{name.upper()}{space}{argument}")
    assert found is not None
    assert found[0] is COMMANDS[name]
    assert found[1] == argument.strip()


def test_every_command_is_explained_in_each_language_and_aliases_are_not_listed_twice() -> None:
    for command in COMMANDS.values():
        assert command.help["en"]
        assert re.search("[\u0600-\u06ff]", command.help["ar"])


@pytest.mark.parametrize(("language", "stopped", "idle"), [("en", "Stopped", "Nothing"), ("ar", "توقّف", "لا شيء")])
async def test_stop_says_whether_something_ran(language: Language, stopped: str, idle: str) -> None:
    desk = Desk()
    assert stopped in await answer("/stop", language=language, desk=desk)
    assert desk.stops == ["telegram:7"]
    assert idle in await answer("/stop", language=language, desk=Desk(runs=False))


@pytest.mark.parametrize(("language", "word"), [("en", "Waiting messages: 2"), ("ar", "الرسائل المنتظرة: 2")])
async def test_status_tells_the_queue_and_the_channels_that_are_on(language: Language, word: str) -> None:
    text = await answer("/status", language=language)
    assert word in text
    assert "1d 2h" in text
    assert "- telegram: unreachable (no network)" in text
    assert "inapp" not in text


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_what_is_the_owners_is_refused_and_not_offered_to_others(language: Language) -> None:
    assert "/status" in await answer("/help", language=language)
    shown = await answer("/help", language=language, is_owner=False)
    assert "/status" not in shown
    assert "/new" in shown
    desk = Desk()
    refused = await answer("/status", language=language, is_owner=False, desk=desk)
    assert "offline" not in refused


async def test_start_of_a_messenger_is_the_help() -> None:
    assert await answer("/start") == await answer("/help")
    assert (await answer("/help")).count("/help") == 1


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_run_starts_a_job_with_its_values_or_says_why_not(language: Language) -> None:
    desk = Desk()
    assert "report" in await answer('/run report city="New York" week=46', language=language, desk=desk)
    assert desk.started == [{"city": "New York", "week": "46"}]
    assert "nobody" in await answer("/run nobody", language=language, desk=desk)
    assert "is still running" in await answer("/run busy", language=language, desk=desk)
    assert "/run NAME" in await answer("/run", language=language, desk=desk)
    assert "it's" in await answer("/run it's", language=language, desk=desk)
    await answer("/run report", language=language, is_owner=False, desk=desk)
    assert len(desk.started) == 1
