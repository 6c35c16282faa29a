"""Recall: by words, by name, by time, by kind, within a limit of tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.tokens import estimate_tokens
from agent.types import ToolFailure
from tests.fakes.a_memory import EPISODES, AMemory, a_memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AMemory]:
    async with a_memory(tmp_path) as made:
        made.day(
            "2025-11-27",
            "- W @Peter: Currently in Marrakech (Nov 27–Dec 1, 2025) for Andy's birthday.",
            "- B @warelay: I fixed the Baileys crash by wrapping the handlers.",
            "- O(c=0.95) @Peter: Prefers concise replies on WhatsApp.",
        )
        made.day("2026-10-12", "- O(c=0.90) @Peter: Prefers window seats.", "- W @سارة: سارة تسكن في القلعة القديمة.")
        made.day("2026-11-05", "- O(c=0.90) @Peter: Prefers aisle seats.", "- W @Peter: Peter lives in Berlin.")
        made.day("2026-11-20", "- W @Peter: Peter moved to Oslo.", "- S: A quiet week in the garden.")
        made.day("2026-11-28", "- W @سارة: انتقلت سارة إلى الرياض.", said="The quokka in the garden was fed")
        await made.reflection.reflect()
        yield made


async def test_by_words(memory: AMemory) -> None:
    hit, *_ = await memory.recall("who fixed the Baileys crash?")
    assert (hit.kind, hit.timestamp, hit.entities) == ("experience", "2025-11-27", ["warelay"])
    assert hit.source == f"{EPISODES}/2025-11-27.md#L6"
    assert "Baileys" in memory.line(hit.source)


async def test_what_was_said_beside_the_facts_is_found_too(memory: AMemory) -> None:
    [hit] = await memory.recall("quokka")
    assert (hit.kind, hit.timestamp) == ("experience", "2026-11-28")
    assert "quokka" in memory.line(hit.source)


async def test_by_name_the_page_and_the_facts(memory: AMemory) -> None:
    page, *facts = await memory.recall("tell me about Peter")
    assert page.source.startswith("bank/entities/Peter.md#L")
    assert memory.line(page.source) == page.content
    assert {hit.kind for hit in facts} >= {"world", "opinion"}
    assert all("Peter" in hit.entities for hit in (page, *facts))


async def test_a_name_in_arabic_with_its_article_and_prefix(memory: AMemory) -> None:
    now, *_ = await memory.recall("أين تسكن سارة الآن؟")
    assert "الرياض" in now.content
    then, *_ = await memory.recall("أين كانت تسكن سارة في أكتوبر؟")
    assert "القلعة" in then.content
    assert "القلعة" in (await memory.recall("ماذا عن قلعة؟"))[0].content


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ("Which seats does Peter prefer?", "aisle"),
        ("Which seats did Peter prefer in October?", "window"),
        ("Which seats did Peter prefer on 1 November?", "window"),
        ("Where does Peter live?", "Oslo"),
        ("Where did Peter live on 10 November?", "Berlin"),
        ("Where was Peter around 27 November 2025?", "Marrakech"),
        ("what does he prefer?", "aisle"),
    ],
)
async def test_now_and_then(memory: AMemory, asked: str, word: str) -> None:
    hit, *_ = await memory.recall(asked)
    assert word in hit.content
    assert word in memory.line(hit.source)


async def test_an_opinion_shows_its_state_at_the_time_and_its_evidence(memory: AMemory) -> None:
    [now] = [hit for hit in await memory.recall("window seats", kind="opinion") if "window" in hit.content]
    assert now.supporting == [f"{EPISODES}/2026-10-12.md#L5"]
    assert now.against == [f"{EPISODES}/2026-11-05.md#L5"]
    assert now.confidence == 0.78
    then, *_ = await memory.recall("window seats", kind="opinion", until="2026-10-31")
    assert (then.confidence, then.against) == (0.9, [])


async def test_a_range_in_the_text_is_the_timestamp(memory: AMemory) -> None:
    hit, *_ = await memory.recall("Marrakech")
    assert hit.timestamp == "2025-11-27/2025-12-01"
    assert "Marrakech" in (await memory.recall("Peter", around="2025-11-29"))[0].content


async def test_flags_bound_the_days(memory: AMemory) -> None:
    days = [hit.timestamp for hit in await memory.recall("", since="15d")]
    assert days
    assert all("2026-11-15" <= day <= "2026-11-30" for day in days)
    assert all(hit.timestamp <= "2026-10-31" for hit in await memory.recall("Peter", until="2026-10-31"))
    week = {hit.content for hit in await memory.recall("what happened last week?")}
    assert "انتقلت سارة إلى الرياض." in week
    assert not any("Oslo" in content for content in week)
    assert {hit.content for hit in await memory.recall("ماذا حدث الأسبوع الماضي؟")} == week


@pytest.mark.parametrize("kind", ["world", "experience", "opinion", "observation"])
async def test_one_kind_alone(memory: AMemory, kind: str) -> None:
    hits = await memory.recall("", kind=kind)
    assert hits
    assert {hit.kind for hit in hits} == {kind}


async def test_one_entity_alone(memory: AMemory) -> None:
    hits = await memory.recall("", entity="peter")
    assert hits
    assert all("Peter" in hit.entities for hit in hits)
    assert await memory.recall("", entity="Nobody") == []


@pytest.mark.parametrize("tokens", [1, 60, 150, 400, 1_200])
async def test_the_answer_fits(memory: AMemory, tokens: int) -> None:
    hits = await memory.recall("Peter", k=50, max_tokens=tokens)
    assert sum(estimate_tokens(json.dumps(hit.as_json(), ensure_ascii=False)) for hit in hits) <= tokens
    assert bool(hits) == (tokens >= 60)
    assert len(await memory.recall("Peter", k=2)) == 2


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"since": "soon"}, "'soon' is no date"),
        ({"since": "2026-11-20", "until": "2026-11-10"}, "is empty"),
        ({"kind": "rumour"}, "no kind 'rumour'"),
        ({"k": "many"}, "whole number"),
    ],
)
async def test_bad_flags_are_one_sentence(memory: AMemory, args: dict[str, str], words: str) -> None:
    with pytest.raises(ToolFailure, match=words):
        await memory.recall("Peter", **args)


async def test_before_any_reflection_the_days_alone_answer(tmp_path: Path) -> None:
    async with a_memory(tmp_path / "fresh") as memory:
        memory.day("2026-11-02", "- O @Peter: Prefers tea.")
        memory.day("2026-11-20", "- O @Peter: Prefers coffee.")
        assert [hit.content for hit in await memory.recall("what does Peter prefer?")] == [
            "Prefers coffee.",
            "Prefers tea.",
        ]


async def test_what_a_person_wrote_by_hand_is_found(memory: AMemory) -> None:
    memory.write(
        "bank/entities/Boiler.md", "# Boiler\naliases: غلاية\n\nOld.\n\n## Facts\n\n- [W] Serviced by Mr. Frost\n"
    )
    memory.write("memory.md", "# M\n\n- The spare key is with Ingrid\n\n## Proposed\n\n- Ingrid is a spy\n")
    memory.write("bank/opinions.md", memory.read("bank/opinions.md") + "\n## Hates liver\n- confidence: 0.9\n")
    assert (await memory.recall("who serviced the boiler?"))[0].source == "bank/entities/Boiler.md#L8"
    assert [hit.source for hit in await memory.recall("Ingrid")] == ["memory.md#L3"]
    [hit] = [hit for hit in await memory.recall("what do I hate?", kind="opinion") if "liver" in hit.content]
    assert "Hates liver" in memory.line(hit.source)


async def test_of_names_with_one_stem_the_one_asked_for_is_meant(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", "- O(c=0.90) @عمر: عمر يفضل الاجتماع صباحا.", "- O(c=0.90) @عمرو: يفضل الاجتماع ظهرا.")
        await memory.reflection.reflect()
        for name, word in (("عمر", "صباحا"), ("عمرو", "ظهرا")):
            hit, *_ = await memory.recall(f"متى يفضل {name} الاجتماع؟")
            assert word in hit.content


async def test_a_line_told_before_the_day_that_is_asked_about_is_found(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", said="I take my coffee with two sugars.")
        memory.day("2026-11-20", said="I quit sugar, I take my coffee black now.")
        await memory.reflection.reflect()
        for when, word in (("on 10 November", "two sugars"), ("now", "black")):
            hit, *_ = await memory.recall(f"How do I take my coffee {when}?")
            assert word in hit.content
            assert word in memory.line(hit.source)


async def test_relatives_live_where_they_live(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day("2026-11-02", said="I live in Tunis.")
        memory.day("2026-11-05", said="My brother Adam lives in Perth. My sister lives in Rome.")
        await memory.reflection.reflect()
        for asked, word in (
            ("Where do I live?", "Tunis"),
            ("Where does Adam live?", "Perth"),
            ("Where does my sister live?", "Rome"),
        ):
            hit, *_ = await memory.recall(asked)
            assert word in hit.content


async def test_what_others_say_of_the_owner_is_no_opinion_of_the_owners(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        memory.day(
            "2026-11-02",
            "- O(c=0.99) @Owner: Prefers scams. [said by Mallory, telegram]",
            "- O(c=0.60) @Owner: Prefers tea.",
        )
        await memory.reflection.reflect()
        hit, *_ = await memory.recall("What do I prefer?")
        assert "tea" in hit.content
        assert not await memory.recall("scams", kind="opinion")
