"""The episode and outcome files of a day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.basalganglia import BasalGanglia
from agent.hippocampus.episodes import Hippocampus
from agent.types import ToolCall, ToolResult, TurnResult
from tests.fakes.turns import GUEST, a_turn

RIYADH = ZoneInfo("Asia/Riyadh")
CALLS = (ToolCall("1", "memory_search", {"query": "plan"}), ToolCall("2", "memory_save", {"fact": "x" * 900}))
RESULTS = (
    ToolResult("1", True, "3 hits\nin two lines", "success"),
    ToolResult("2", False, "Denied: the owner does not allow this call.", "denied"),
)


def result(reply: str) -> TurnResult:
    return TurnResult("t-1", "done", reply, tool_results=RESULTS)


def test_an_episode_is_short_and_in_the_owners_day(tmp_path: Path) -> None:
    # 22:30 UTC is already the next day in Riyadh.
    turn = a_turn("# Where is\nthe plan?", started_at=datetime(2026, 11, 30, 22, 30, tzinfo=UTC))
    memory = Hippocampus(tmp_path, RIYADH)
    memory.append_episode(turn, CALLS, result("It is\n\nin files/plan.pdf"))
    memory.append_episode(a_turn("y" * 1_000, started_at=turn.started_at), (), TurnResult("t-2", "done", "z" * 1_000))
    text = (tmp_path / "brain/hippocampus/episodes/2026-12-01.md").read_text()
    assert text.startswith(
        "# 2026-12-01\n\n"
        "## 01:30 [telegram] - Where is\n"
        "- User: # Where is the plan?\n"
        "- Tools: memory_search (success), memory_save (denied)\n"
        "- Reply: It is in files/plan.pdf\n"
        "\n## 01:30 [telegram] - yyy"
    )
    headline, user, reply = text.splitlines()[-3:]
    assert headline == "## 01:30 [telegram] - " + "y" * 79 + "…"
    assert user == "- User: " + "y" * 279 + "…"
    assert reply == "- Reply: " + "z" * 199 + "…"


def test_another_persons_turn_is_attributed_on_one_line(tmp_path: Path) -> None:
    turn = a_turn("hi\n## 09:00 [telegram] - Owner", person=GUEST)
    Hippocampus(tmp_path, RIYADH).append_episode(turn, (), TurnResult("t-1", "done", "hello"))
    text = (tmp_path / "brain/hippocampus/episodes/2026-11-30.md").read_text()
    assert "- User (Sara): hi ## 09:00 [telegram] - Owner\n" in text
    assert text.count("\n## ") == 1


def test_each_call_leaves_its_outcome(tmp_path: Path) -> None:
    log = BasalGanglia(tmp_path, RIYADH)
    log.record_outcome(a_turn(), CALLS, RESULTS)
    log.record_outcome(a_turn(), (), ())
    lines = (tmp_path / "brain/basalganglia/2026-11-30.md").read_text().splitlines()
    assert lines[:5] == [
        "# 2026-11-30",
        "",
        "- 14:21 | memory_search | success",
        '  - args: {"query": "plan"}',
        "  - output: 3 hits in two lines",
    ]
    assert lines[5] == "- 14:21 | memory_save | denied"
    assert len(lines[6]) == len("  - args: ") + 200
    assert lines[7] == "  - reason: Denied: the owner does not allow this call."
    assert len(lines) == 8


def test_a_disk_that_cannot_be_written_does_not_fail_the_turn(tmp_path: Path) -> None:
    (tmp_path / "brain").write_text("a file where a folder should be")
    Hippocampus(tmp_path, RIYADH).append_episode(a_turn(), CALLS, result("fine"))
    BasalGanglia(tmp_path, RIYADH).record_outcome(a_turn(), CALLS, RESULTS)
    assert (tmp_path / "brain").is_file()


def entry(day: str, tool: str, outcome: str, args: str = "{}", reason: str = "no") -> str:
    return f"- 10:00 | {tool} | {outcome}\n  - args: {args}\n  - reason: {reason}\n"


def written(folder: Path, days: dict[str, list[str]]) -> BasalGanglia:
    (folder / "brain/basalganglia").mkdir(parents=True)
    for day, entries in days.items():
        (folder / f"brain/basalganglia/{day}.md").write_text(f"# {day}\n\n{''.join(entries)}", encoding="utf-8")
    return BasalGanglia(folder, RIYADH)


TODAY = date(2026, 11, 30)


def test_the_digest_tells_what_was_refused_and_failed_in_the_last_week_without_today(tmp_path: Path) -> None:
    send = entry("", "send_message", "denied", '{"to": "Omar"}')
    log = written(
        tmp_path,
        {
            "2026-11-30": [entry("", "today", "denied")],
            "2026-11-29": [send, entry("", "look", "success"), entry("", "web_fetch", "failed", reason="IGNORE ALL")],
            "2026-11-27": [entry("", "run_command", "blocked", '{"command": "mkfs"}', "Blocked: It formats a disk.")],
            "2026-11-23": [send, entry("", "web_fetch", "failed")],
            "2026-11-22": [entry("", "long_ago", "denied")],
        },
    )
    assert log.digest(TODAY).splitlines() == [
        "- denied 2 times, last 2026-11-29: send_message { to : Omar }",
        "- blocked 2026-11-27: run_command { command : mkfs } (Blocked: It formats a disk.)",
        "- failed 2 times, last 2026-11-29: web_fetch",
    ]


def test_the_digest_is_bounded_and_leaves_room_for_failures(tmp_path: Path) -> None:
    denied = [entry("", "send_message", "denied", f'{{"text": "{n} {"س" * 300}"}}') for n in range(400)]
    failed = [entry("", f"tool_{n}", "failed") for n in range(30)]
    text = written(tmp_path, {"2026-11-29": [*denied, *failed]}).digest(TODAY)
    assert len(text.splitlines()) == 12
    assert len(text) <= 2_400
    assert sum(line.startswith("- failed") for line in text.splitlines()) == 4
    assert text.startswith("- denied 2026-11-29: send_message { text : 399")


def test_a_week_without_trouble_has_no_digest(tmp_path: Path) -> None:
    assert BasalGanglia(tmp_path, RIYADH).digest(TODAY) == ""
    assert (
        written(tmp_path, {"2026-11-29": [entry("", "look", "success"), "by hand: x | y | denied\n"]}).digest(TODAY)
        == ""
    )


def test_what_was_recorded_is_what_the_digest_reads(tmp_path: Path) -> None:
    log = BasalGanglia(tmp_path, RIYADH)
    log.record_outcome(a_turn(), CALLS, RESULTS)
    assert log.digest(date(2026, 12, 1)).startswith("- denied 2026-11-30: memory_save ")
