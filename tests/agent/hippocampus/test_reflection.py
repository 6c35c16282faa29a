"""Reflection: what it writes, that it leaves alone what persons wrote, and that a second run changes nothing."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from agent.hippocampus.pages import HISTORY, VERSIONS_KEPT
from agent.types import ToolFailure
from tests.fakes.a_memory import EPISODES, OWNER, AMemory, a_memory
from tests.fakes.scripted_month import DAYS, FIRST, scripted_month


async def a_month(memory: AMemory, seed: int) -> None:
    """The month, lived day by day, with reflection each night and consolidation each Monday."""
    month = scripted_month(seed)
    for n in range(DAYS + 1):
        now = memory.at(FIRST + timedelta(days=n))
        month.write(memory.workspace, now.date() - timedelta(days=1))
        await memory.index.update_files()
        await memory.reflection.daily(now)
        if now.weekday() == 0:
            await memory.reflection.weekly(now)


@pytest.mark.parametrize("seed", [1, 7, 19])
async def test_after_a_scripted_month_now_and_then_are_told_apart(tmp_path: Path, seed: int) -> None:
    month = scripted_month(seed)
    async with a_memory(tmp_path) as memory:
        await a_month(memory, seed)
        first: list[object] = []
        for question in (*month.now, *month.then):
            hit, *_ = await memory.recall(question.text)
            assert question.word.casefold() in hit.content.casefold(), question
            assert question.word.casefold() in memory.line(hit.source).casefold(), question
            assert hit.source.startswith(EPISODES)
            first.append((hit.content, hit.source, hit.timestamp))
        assert len(list((memory.workspace / "brain/hippocampus/consolidated").iterdir())) == 4
        files = memory.files()
        assert await memory.reflection.daily(memory.now) == ""
        assert await memory.reflection.weekly(memory.now) == ""
        assert memory.files() == files
    for name in ("index.db", "truth.db"):
        (tmp_path / name).unlink()
    async with a_memory(tmp_path, memory.now.date()) as memory:
        again = [(await memory.recall(question.text))[0] for question in (*month.now, *month.then)]
        assert [(hit.content, hit.source, hit.timestamp) for hit in again] == first


async def test_the_pages_are_written_in_their_grammar(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day(
            "2026-11-02",
            "- W @Peter @Sara: Peter met Sara in Rome.",
            "- O(c=0.90) @Peter: Prefers window seats.",
            "- W: It rains in November.",
            "- B @warelay: I fixed the crash.",
            "- broken",
        )
        memory.day("2026-11-20", "- W @Sara @Peter: Peter met Sara in Rome!", "- O @Peter: Prefers aisle seats.")
        done = await memory.reflection.reflect()
        assert [(fault.path, fault.line) for fault in done.faults] == [(f"{EPISODES}/2026-11-02.md", 9)]
        peter = memory.read("bank/entities/Peter.md")
        both = f"({EPISODES}/2026-11-02.md#L5, 2026-11-02; {EPISODES}/2026-11-20.md#L5, 2026-11-20)"
        assert f"- [W] Peter met Sara in Rome. {both}" in peter
        assert "First seen 2026-11-02, last seen 2026-11-20." in peter
        assert "- [Sara](Sara.md)" in peter
        opinions = memory.read("bank/opinions.md")
        assert (
            "## Prefers window seats\n\n- confidence: 0.81\n- entities: @Peter\n- updated: 2026-11-20\n"
            f"- for: {EPISODES}/2026-11-02.md#L6\n- against: {EPISODES}/2026-11-20.md#L6\n"
        ) in opinions
        assert f"- 2026-11-02: It rains in November. ({EPISODES}/2026-11-02.md#L7)" in memory.read("bank/world.md")
        assert "I fixed the crash" in memory.read("bank/experience.md")
        assert not (await memory.reflection.reflect()).changed


async def test_references_stay_right_when_lines_move(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- O(c=0.90) @Peter: Prefers window seats.")
        await memory.reflection.reflect()
        text = memory.read(f"{EPISODES}/2026-11-02.md")
        memory.write(f"{EPISODES}/2026-11-02.md", text.replace("## Retain\n", "A line.\n\n## Retain\n\n- W: new\n"))
        await memory.reflection.reflect()
        opinions = memory.read("bank/opinions.md")
        [source] = [hit.source for hit in await memory.recall("seats", entity="Peter", kind="opinion")]
        assert source in opinions
        assert "Prefers window seats" in memory.line(source)
        assert "- confidence: 0.90" in opinions


async def test_a_bullet_edited_by_hand_counts_as_it_is_now(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- O(c=0.90) @Peter: Prefers window seats.", "- O @Peter: Likes jazz.")
        await memory.reflection.reflect()
        text = memory.read(f"{EPISODES}/2026-11-02.md")
        memory.write(f"{EPISODES}/2026-11-02.md", text.replace("window", "aisle"))
        await memory.reflection.reflect()
        opinions = memory.read("bank/opinions.md")
        assert "Prefers aisle seats" in opinions
        assert not any("window" in hit.content for hit in await memory.recall("seats", entity="Peter"))


async def test_a_day_file_that_is_gone_takes_its_facts_along(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        for n in range(1, 9):
            memory.day(f"2026-11-0{n}", f"- W @Peter: Peter wrote letter {n}.", f"- O @Peter: Likes band {n}.")
        await memory.reflection.reflect()
        (memory.workspace / EPISODES / "2026-11-03.md").unlink()
        done = await memory.reflection.reflect()
        assert not done.refused
        assert "letter 3" not in memory.read("bank/entities/Peter.md")
        assert "band 3" not in memory.read("bank/opinions.md")
        assert "band 4" in memory.read("bank/opinions.md")


async def test_a_rewrite_that_drops_too_much_is_refused_and_reported(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        for n in range(1, 9):
            memory.day(f"2026-11-0{n}", f"- W @Peter: Peter wrote letter {n}.")
        await memory.reflection.reflect()
        for n in range(1, 7):
            (memory.workspace / EPISODES / f"2026-11-0{n}.md").unlink()
        memory.day("2026-11-09", "- W @Peter: Peter wrote letter 9.")
        done = await memory.reflection.reflect()
        assert any(reason.startswith("bank/entities/Peter.md: ") for reason in done.refused)
        page = memory.read("bank/entities/Peter.md")
        assert all(f"letter {n}" in page for n in range(1, 10))


async def test_what_a_person_writes_is_never_lost(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- W @Peter: Peter has a dog.", "- O(c=0.90) @Peter: Prefers tea.")
        await memory.reflection.reflect()
        page, opinions = memory.read("bank/entities/Peter.md"), memory.read("bank/opinions.md")
        memory.write(
            "bank/entities/Peter.md", page.replace("Peter has a dog. Pref", "MY SUMMARY. Pref", 1) + "\nMY END\n"
        )
        memory.write("bank/opinions.md", opinions.replace("0.90", "0.30") + "MY REMARK\n\n## MY OPINION\n")
        memory.write("memory.md", "MY MEMORY\n")
        memory.day("2026-11-03", "- W @Peter: Peter has a cat.", "- O @Peter: Prefers tea.")
        await memory.reflection.reflect()
        after = memory.read("bank/entities/Peter.md")
        assert "MY END" in after
        assert "Peter has a cat" in after
        changed = memory.read("bank/opinions.md")
        assert "MY REMARK" in changed
        assert "## MY OPINION" in changed
        assert "- confidence: 0.35" in changed  # 0.30 set by hand, then one support
        assert memory.read("memory.md") == "MY MEMORY\n"
        assert not (await memory.reflection.reflect()).changed


async def test_what_a_person_takes_out_stays_out(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- O @Peter: Likes jazz.", "- O @Peter: Likes rock.", said="I prefer tea")
        await memory.reflection.reflect()
        day = memory.read(f"{EPISODES}/2026-11-02.md")
        assert "I prefer tea\n<!--" in day
        memory.write(f"{EPISODES}/2026-11-02.md", day.replace("- O(c=0.80) @Owner: I prefer tea\n", ""))
        opinions = memory.read("bank/opinions.md")
        kept, _, rest = opinions.partition("## Likes jazz")
        memory.write("bank/opinions.md", f"{kept}## Likes rock{rest.partition('## Likes rock')[2]}")
        await memory.reflection.reflect()
        assert "- O(c=0.80)" not in memory.read(f"{EPISODES}/2026-11-02.md")
        assert "jazz" not in memory.read("bank/opinions.md")
        assert "rock" in memory.read("bank/opinions.md")


@pytest.mark.parametrize("others", [(), ("- W @Peter: Peter has a dog.",)])
async def test_what_was_taken_out_everywhere_does_not_live_on_in_a_summary(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", *others, "- W @Peter: Peter was in prison.")
        await memory.reflection.reflect()
        for page in ("bank/entities/Peter.md", f"{EPISODES}/2026-11-02.md"):
            kept = [line for line in memory.read(page).splitlines() if "in prison" not in line or "First seen" in line]
            memory.write(page, "\n".join(kept) + "\n")
        await memory.reflection.reflect()
        assert "prison" not in memory.read("bank/entities/Peter.md")
        assert not (await memory.reflection.reflect()).changed


async def test_two_pages_become_one_and_a_page_is_renamed_by_one_edit(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- W @Peter: Peter has a dog.", "- W @بيتر: يسكن في جدة.", "- O @بيتر: يفضل القهوة")
        memory.day("2026-11-03", "- O @Peter: Prefers coffee.")
        await memory.reflection.reflect()
        page = memory.read("bank/entities/Peter.md")
        memory.write(
            "bank/entities/Peter.md", page.replace("aliases:", "aliases: بيتر").replace("# Peter", "# Peter Smith")
        )
        await memory.reflection.reflect()
        assert not (memory.workspace / "bank/entities/بيتر.md").exists()
        assert list((memory.workspace / HISTORY / "bank/entities/بيتر.md").iterdir())
        page = memory.read("bank/entities/Peter.md")
        assert page.startswith("# Peter Smith\naliases: بيتر\n")
        assert "جدة" in page
        assert memory.read("bank/opinions.md").count("\n## ") == 1
        assert {hit.source for hit in await memory.recall("أين يسكن بيتر؟")} >= {f"{EPISODES}/2026-11-02.md#L6"}
        assert not (await memory.reflection.reflect()).changed


async def test_words_of_others_are_no_opinions_and_do_not_reach_memory_md(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        for n in range(1, 7):
            memory.day(f"2026-11-0{n}", said="Remember that I prefer rain", who="Owner")
        await memory.reflection.reflect()
        assert not (memory.workspace / "bank/opinions.md").exists()
        assert not (memory.workspace / "memory.md").exists()
        [hit] = [hit for hit in await memory.recall("rain") if hit.kind == "world"]
        assert "[said by Owner, telegram]" in hit.content


async def test_what_has_proved_lasting_is_proposed_once_and_taken_or_left(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.write("memory.md", "# Memory\n\nThe boiler is old.\n")
        for n in range(1, 5):
            memory.day(f"2026-11-0{n}", said="I prefer tea in the morning")
        await memory.reflection.reflect()
        text = memory.read("memory.md")
        assert "## Proposed\n\n- I prefer tea in the morning (" in text
        memory.write("memory.md", text.partition("\n## Proposed")[0])
        assert not (await memory.reflection.reflect()).changed
        memory.write("memory.md", "x" * 7_000)
        done = await memory.reflection.reflect()
        assert any("memory.md has 7,000 characters" in reason for reason in done.refused)


async def test_the_version_before_is_kept_and_only_the_newest_few(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        for n in range(1, 16):
            memory.day(f"2026-11-{n:02}", f"- W @Peter: Peter wrote letter {n}.")
            memory.at(date(2026, 11, n))
            await memory.reflection.reflect()
        versions = sorted((memory.workspace / HISTORY / "bank/entities/Peter.md").iterdir())
        assert len(versions) == VERSIONS_KEPT
        assert "letter 14" in versions[-1].read_text()
        assert "letter 15" not in versions[-1].read_text()
        await memory.index.update_files()
        assert not any(".history" in hit.ref for hit in (await memory.index.search(OWNER, "letter")).hits)


async def test_an_edit_during_the_run_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.hippocampus import pages

    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- W @Peter: Peter has a dog.")
        await memory.reflection.reflect()
        memory.day("2026-11-03", "- W @Peter: Peter has a cat.")
        real = pages.keep_version
        edited: list[str] = []

        def keep(workspace: Path, page: str, text: str, now: object) -> None:
            if page.endswith("Peter.md") and not edited:
                edited.append(page)
                memory.write(page, text + "\nwritten meanwhile\n")
            real(workspace, page, text, now)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(pages, "keep_version", keep)
        await memory.reflection.reflect()
        page = memory.read("bank/entities/Peter.md")
        assert edited
        assert "written meanwhile" in page
        assert "cat" in page


async def test_a_page_that_is_no_utf8_is_left_alone_and_said_so(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- W @Peter: Peter has a dog.", "- W @Sara: Sara sings.")
        (memory.workspace / "bank/entities").mkdir(parents=True)
        (memory.workspace / "bank/entities/Peter.md").write_bytes(b"# Peter\n\xff\xfe\n")
        done = await memory.reflection.reflect()
        assert (memory.workspace / "bank/entities/Peter.md").read_bytes() == b"# Peter\n\xff\xfe\n"
        assert any("not UTF-8" in reason for reason in done.refused)
        assert "sings" in memory.read("bank/entities/Sara.md")


async def test_since_leaves_older_days_alone(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-10-02", "- O @Peter: Likes jazz.", said="I prefer tea")
        memory.day("2026-11-29", "- O @Peter: Likes rock.")
        await memory.reflection.reflect(date(2026, 11, 23))
        assert "jazz" not in memory.read("bank/opinions.md")
        assert "rock" in memory.read("bank/opinions.md")
        assert "- O(c=0.80)" not in memory.read(f"{EPISODES}/2026-10-02.md")
        await memory.reflection.reflect()
        assert "jazz" in memory.read("bank/opinions.md")


async def test_retain_appends_once_and_refuses_what_is_malformed(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-30", said="hello")
        kept = await memory.reflection.retain("O(c=0.9) @Peter: Prefers tea.")
        assert (kept.status, memory.line(kept.ref)) == ("saved", "- O(c=0.90) @Peter: Prefers tea.")
        again = await memory.reflection.retain("- O @peter: prefers TEA")
        assert (again.status, again.ref) == ("known", kept.ref)
        other = await memory.reflection.retain("- W: It rains.")
        assert memory.read(f"{EPISODES}/2026-11-30.md").count("## Retain") == 1
        assert memory.line(other.ref) == "- W: It rains."
        with pytest.raises(ToolFailure, match="Write for example"):
            await memory.reflection.retain("Peter prefers tea")
