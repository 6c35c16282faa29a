"""With a model: what it says is held against the evidence, and what has none is dropped."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.a_memory import EPISODES, FakeJudge, a_memory

LINE = 4
"""Of what was said, in the day files of these tests."""


def fact(text: str, quote: str, kind: str = "W", line: int = LINE, **more: object) -> dict[str, object]:
    return {"type": kind, "text": text, "line": line, "quote": quote, **more}


async def test_proposed_facts_need_their_line(tmp_path: Path) -> None:
    said = "The ferry to Bergen leaves at 7 from pier 12, Ann is on it"
    judge = FakeJudge(
        {
            "Take 2 to 5": {
                "facts": [
                    fact(
                        "The ferry to Bergen leaves at 7 from pier 12.", "ferry to Bergen leaves at 7", entities=["Ann"]
                    ),
                    fact("The ferry to Bergen leaves at 9.", "ferry to Bergen leaves at 7"),
                    fact("Ann is a famous pirate captain in Norway.", "Ann is on it"),
                    fact("The ferry leaves at 7.", "words nobody said here"),
                    fact("The agent noted it.", "Reply: Noted.", line=LINE + 1),
                ]
            }
        }
    )
    async with a_memory(tmp_path, judge=judge) as memory:
        memory.day("2026-11-20", said=said)
        done = await memory.reflection.reflect()
        text = memory.read(f"{EPISODES}/2026-11-20.md")
        assert "- W @Ann: The ferry to Bergen leaves at 7 from pier 12." in text
        assert all(word not in text for word in ("at 9.", "pirate", "\n- W: The ferry leaves at 7.\n"))
        assert done.taken >= 1
        asked = len(judge.asked)
        assert not (await memory.reflection.reflect()).changed
        assert len(judge.asked) == asked, "a day is read by the model once"


async def test_an_opinion_from_others_words_is_none(tmp_path: Path) -> None:
    judge = FakeJudge(
        {"Take 2 to 5": {"facts": [fact("The owner prefers rain.", "I prefer rain", "O", confidence=0.9)]}}
    )
    async with a_memory(tmp_path, judge=judge) as memory:
        memory.day("2026-11-20", said="I prefer rain, tell your owner", who="Sara")
        await memory.reflection.reflect()
        text = memory.read(f"{EPISODES}/2026-11-20.md")
        assert "- O" not in text
        assert not (memory.workspace / "bank/opinions.md").exists()


async def test_relations_and_summaries(tmp_path: Path) -> None:
    judge = FakeJudge(
        {
            "Say how each fact bears": {"judgements": [{"fact": 1, "statement": 1, "relation": "contradicts"}]},
            "Sum up in at most": {"summary": "Peter turned from ramen to sushi.", "facts": [1]},
        }
    )
    async with a_memory(tmp_path, judge=judge) as memory:
        memory.day("2026-11-01", "- O(c=0.90) @Peter: Is mad about ramen.")
        memory.reflection.judge = None
        await memory.reflection.reflect()
        memory.reflection.judge = judge
        memory.day("2026-11-20", "- O(c=0.90) @Peter: Is mad about sushi.")
        await memory.reflection.reflect()
        assert f"- against: {EPISODES}/2026-11-20.md#L5" in memory.read("bank/opinions.md")
        assert "Peter turned from ramen to sushi. First seen" in memory.read("bank/entities/Peter.md")
        asked = len(judge.asked)
        assert not (await memory.reflection.reflect()).changed
        assert len(judge.asked) == asked


async def test_a_summary_that_its_facts_do_not_bear_out_falls(tmp_path: Path) -> None:
    for summary in ("Peter owes Mallory 5000 dollars.", "Peter met Zed in Paris once."):
        judge = FakeJudge({"Sum up in at most": {"summary": summary, "facts": [1]}})
        async with a_memory(tmp_path / summary[:12], judge=judge) as memory:
            memory.day("2026-11-20", "- W @Peter: Peter has a dog.")
            await memory.reflection.reflect()
            assert "Peter has a dog. First seen" in memory.read("bank/entities/Peter.md")


async def test_an_answer_outside_the_schema_leaves_the_rules(tmp_path: Path) -> None:
    judge = FakeJudge({"Take 2 to 5": {"facts": "many"}, "Say how": [1, 2], "Sum up": {"summary": 5}})
    async with a_memory(tmp_path, judge=judge) as memory:
        memory.day("2026-11-20", "- O @Peter: Likes jazz.", said="I prefer tea")
        await memory.reflection.reflect()
        assert "I prefer tea" in memory.read("bank/opinions.md")


async def test_notes_on_a_week_need_their_line(tmp_path: Path) -> None:
    notes = [
        {"text": "The garden shed was painted green", "line": 1},
        {"text": "A dragon burnt the village", "line": 1},
    ]
    judge = FakeJudge({"Say in 3 to 12": {"notes": notes}})
    async with a_memory(tmp_path, judge=judge) as memory:
        memory.day("2026-11-18", said="the garden shed was painted green today")
        await memory.reflection.weekly(memory.now)
        page = memory.read("brain/hippocampus/consolidated/2026-W47.md")
        assert f"- The garden shed was painted green ({EPISODES}/2026-11-18.md#L4)" in page
        assert "dragon" not in page
