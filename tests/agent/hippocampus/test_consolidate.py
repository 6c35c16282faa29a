"""Weeks: what their page holds, which are made when, and what goes on into the knowledge files."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from agent.hippocampus.consolidate import Week, parse_week, week_of
from agent.types import ToolFailure
from tests.fakes.a_memory import EPISODES, AMemory, a_memory

PAGE = "brain/hippocampus/consolidated/2026-W47.md"


def a_week(memory: AMemory) -> None:
    memory.day("2026-11-15", "- W: The Sunday before.")
    memory.day(
        "2026-11-16", "- W @Peter: Peter moved to Oslo.", said="We decided to use SQLite. I still need to call the bank"
    )
    memory.day("2026-11-22", "- O(c=0.90) @Peter: Prefers tea.", said="I like fog", who="Sara")
    memory.day("2026-11-23", "- W: The Monday after.")
    memory.write(
        "usage/daily/2026-11-17.md", "# 2026-11-17\n\n- 10:00:00 | openai | m | in:1 out:1 cw:0 cr:0 | $0.250000\n"
    )
    memory.write("usage/daily/2026-11-23.md", "- 10:00:00 | openai | m | in:1 out:1 cw:0 cr:0 | $9.000000\n")


async def test_the_page_of_a_week(tmp_path: Path) -> None:
    async with a_memory(tmp_path, date(2026, 11, 25)) as memory:
        a_week(memory)
        await memory.reflection.reflect()
        assert (await memory.reflection.weekly(memory.now)).count("consolidated/") == 2
        page = memory.read(PAGE)
        assert page.startswith("# 2026-W47 (2026-11-16 to 2026-11-22)\n\n## What happened\n")
        assert f"- 2026-11-16: Peter moved to Oslo. ({EPISODES}/2026-11-16.md#L9)" in page
        assert "Sunday before" not in page
        assert "Monday after" not in page
        decisions = page.partition("## Decisions")[2].partition("\n## ")[0]
        assert decisions.count("SQLite") == 1
        assert "call the bank" in page.partition("## Open threads")[2].partition("\n## ")[0]
        people = page.partition("## People")[2].partition("\n## ")[0]
        assert "Peter" in people
        assert "Sara" in people
        assert "- turns: 2\n- active days: 2\n- spend: $0.2500\n" in page
        assert f"- {EPISODES}/2026-11-22.md#L1" in page
        for line in page.splitlines():
            if "#L" in line and (ref := line.rpartition("(")[2].rstrip(")")).startswith(EPISODES):
                assert memory.line(ref)


async def test_missed_weeks_are_made_up_once_each(tmp_path: Path) -> None:
    async with a_memory(tmp_path, date(2026, 11, 15)) as memory:
        a_week(memory)
        memory.day("2026-10-05", "- W: Long ago.")
        memory.at(date(2026, 11, 22))
        assert (await memory.reflection.weekly(memory.now)).count(
            "consolidated/"
        ) == 2  # W41 and W46: W47 has not ended
        memory.at(date(2026, 11, 30))
        assert (await memory.reflection.weekly(memory.now)).count("consolidated/") == 2
        assert await memory.reflection.weekly(memory.now) == ""
        (memory.workspace / PAGE).unlink()
        assert await memory.reflection.weekly(memory.now) == ""  # taken out by hand: not made again by itself
        done = await memory.reflection.consolidate_named("2026-W47", None)
        assert PAGE in done.changed
        assert (await memory.reflection.consolidate_named(None, "2026-10-01")).changed == []


async def test_a_persons_words_on_the_page_stay(tmp_path: Path) -> None:
    async with a_memory(tmp_path, date(2026, 11, 25)) as memory:
        a_week(memory)
        await memory.reflection.weekly(memory.now)
        memory.write(PAGE, memory.read(PAGE).replace("## Decisions", "- mine\n\n## Decisions") + "\nmy last word\n")
        memory.day("2026-11-18", "- W @Peter: Peter bought skis.")
        await memory.reflection.consolidate_named("2026-W47", None)
        page = memory.read(PAGE)
        assert "- mine" in page
        assert "my last word" in page
        assert "Peter bought skis" in page


async def test_knowledge_is_merged_and_the_newest_evidence_wins(tmp_path: Path) -> None:
    async with a_memory(tmp_path, date(2026, 11, 10)) as memory:
        memory.write("brain/hippocampus/knowledge/people.md", "# People\n\n- Sara lives in Rome\n")
        memory.day("2026-11-02", "- O(c=0.90) @Peter: Prefers tea.", "- W @Peter: Peter lives in Berlin.")
        memory.day("2026-11-03", "- W @Sara: Sara moved to Lisbon.", said="I love rain", who="Ann")
        await memory.reflection.reflect()
        await memory.reflection.weekly(memory.now)
        people = memory.read("brain/hippocampus/knowledge/people.md")
        assert "- Sara lives in Rome\n" in people
        learned, _, proposed = people.partition("## Proposed")
        assert "Lisbon" in proposed
        assert "Lisbon" not in learned
        assert f"- Peter lives in Berlin. ({EPISODES}/2026-11-02.md#L6, 2026-11-02)" in learned
        assert "[said by Ann, telegram]" in learned
        assert "- Peter: Prefers tea (" in memory.read("brain/hippocampus/knowledge/preferences.md")
        memory.day("2026-11-11", "- O(c=0.90) @Peter: Prefers coffee.", "- W @Peter: Peter moved to Oslo.")
        memory.at(date(2026, 11, 17))
        await memory.reflection.reflect()
        await memory.reflection.weekly(memory.now)
        people = memory.read("brain/hippocampus/knowledge/people.md")
        preferences = memory.read("brain/hippocampus/knowledge/preferences.md")
        assert "Oslo" in people
        assert "Berlin" not in people
        assert "- Sara lives in Rome\n" in people
        assert "coffee" in preferences
        assert "tea" not in preferences
        assert " rain" not in preferences


@pytest.mark.parametrize("text", ["2026-W60", "W40", "next", "2026-40", ""])
def test_what_is_no_week(text: str) -> None:
    assert parse_week(text) is None


def test_weeks_follow_iso_8601() -> None:
    assert week_of(date(2027, 1, 3)) == Week(2026, 53)
    assert (Week(2026, 53).first, Week(2026, 53).last) == (date(2026, 12, 28), date(2027, 1, 3))
    assert parse_week("2026-w05") == Week(2026, 5)


async def test_a_bad_week_and_one_that_has_not_ended_are_said_so(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        with pytest.raises(ToolFailure, match="write it as 2026-W48"):
            await memory.reflection.consolidate_named("soon", None)
        with pytest.raises(ToolFailure, match="has not ended yet"):
            await memory.reflection.consolidate_named("2026-W49", None)
        assert not (await memory.reflection.consolidate_named("2026-W20", None)).changed


async def test_an_older_week_made_again_takes_nothing_back(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-03", "- W @Peter: Peter lives in Rome.")
        memory.day("2026-11-10", "- W @Peter: Peter moved to Oslo.", "- W @Sara: Sara plays chess.")
        await memory.reflection.reflect()
        await memory.reflection.consolidate()
        people = memory.read("brain/hippocampus/knowledge/people.md")
        assert "Oslo" in people
        await memory.reflection.consolidate_named("2026-W45", None)
        assert memory.read("brain/hippocampus/knowledge/people.md") == people
