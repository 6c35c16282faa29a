"""How each channel is, in the shape that tools, page and probes show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.health import ChannelHealth, Health
from tests.fakes.clock import FakeClock

START = datetime(2027, 1, 1, 8, 0, tzinfo=UTC)


def one(health: Health) -> dict[str, Any]:
    [channel] = health.channels()["channels"]
    return channel


def test_a_channel_is_off_or_starting_until_it_says_how_it_is() -> None:
    health = Health(FakeClock(START))
    health.add("a", enabled=False)
    health.add("b", enabled=True)
    assert [(c["channel"], c["enabled"], c["state"]) for c in health.channels()["channels"]] == [
        ("a", False, "off"),
        ("b", True, "starting"),
    ]
    assert not any(c["connected"] for c in health.channels()["channels"])


def test_what_a_channel_says_is_shown_with_its_remedy_and_forgotten_with_the_next_word() -> None:
    health = Health(FakeClock(START))
    report = health.add("a", enabled=True)
    report.retry_at(START + timedelta(seconds=5))
    report.state("unreachable", "no network", "Check the cable.")
    assert one(health) == {
        "channel": "a",
        "enabled": True,
        "connected": False,
        "state": "unreachable",
        "detail": "no network",
        "last_receive_at": None,
        "last_send_at": None,
        "next_retry_at": "2027-01-01T08:00:05.000+00:00",
        "remedy": "Check the cable.",
    }
    report.state("connected")
    shown = one(health)
    assert (shown["connected"], shown["detail"], shown["remedy"], shown["next_retry_at"]) == (True, "", "", None)


def test_last_times_are_those_of_this_run_or_what_the_database_knew() -> None:
    clock = FakeClock(START)
    health = Health(clock)
    report = health.add("a", enabled=True)
    health.known("a", received=START - timedelta(days=1), sent=START - timedelta(days=2))
    assert one(health)["last_receive_at"] == "2026-12-31T08:00:00.000+00:00"
    clock.forward(seconds=1)
    report.received()
    health.sent("a", START + timedelta(seconds=2))
    health.sent("no such channel", START)
    assert one(health)["last_receive_at"] == "2027-01-01T08:00:01.000+00:00"
    assert one(health)["last_send_at"] == "2027-01-01T08:00:02.000+00:00"


def test_changes_are_told_once_each() -> None:
    told: list[str] = []
    health = Health(FakeClock(START))
    report = health.add("a", enabled=True)

    def tell(channel: ChannelHealth) -> None:
        told.append(channel.state)

    health.on_change = tell
    for state in ("connected", "connected", "degraded"):
        report.state(state)
    assert told == ["connected", "degraded"]
