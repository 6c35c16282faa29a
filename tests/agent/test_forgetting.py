"""Forgetting: what a reference or a sentence means, what goes with it, and how a file is brought back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.basalganglia import BasalGanglia
from agent.capabilities.introspect.forgetting import Forgetting
from agent.hippocampus.cutting import TRASH
from agent.hippocampus.episodes import Hippocampus
from agent.hippocampus.forget import Forget
from agent.hippocampus.plans import Plan
from agent.redaction import REDACT
from agent.types import MessageRecord, Person, ToolCall, ToolCallRecord, ToolFailure, ToolResult, Turn, TurnResult
from tests.fakes.library import (
    OWNER,
    START,
    ZONE,
    FakeTranscripts,
    Library,
    a_conversation,
    context,
    forget,
    guest,
    open_library,
)

PEOPLE = "brain/hippocampus/knowledge/people.md"
EPISODE = "brain/hippocampus/episodes/2026-07-01.md"
PAGE = (
    "# People\n\n## Family\n- Sana's shoe size is 43\n  - measured in May\n- Sana likes melons\n\n"
    "## Work\n- Ali pays late\n"
)


@dataclass(slots=True)
class World:
    library: Library
    forget: Forget
    transcripts: FakeTranscripts

    def file(self, path: str, text: str) -> Path:
        return self.library.file(path, text)

    def text(self, path: str) -> str:
        return (self.library.workspace / path).read_text(encoding="utf-8")

    async def plan(self, what: str, **more: Any) -> Plan:
        await self.library.cortex.update_files()
        return await self.forget.plan(OWNER, what, **more)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_library(tmp_path) as library:
        transcripts = FakeTranscripts(a_conversation("c1", "the garage code is 7719", "Noted.", "what about melons"))
        for n, message in enumerate(await transcripts.messages("c1"), 1):
            await library.say(message.text, n=n, role=message.role)
        yield World(library, forget(library, transcripts), transcripts)


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        (f"file:{PEOPLE}#L4", "- Sana's shoe size is 43\n  - measured in May\n"),
        (f"file:{PEOPLE}#L5", "  - measured in May\n"),
        (f"file:{PEOPLE}#L4-L6", "- Sana's shoe size is 43\n  - measured in May\n- Sana likes melons\n"),
        (f"file:{PEOPLE}#Work", "## Work\n- Ali pays late\n"),
        (f"{PEOPLE}#work", "## Work\n- Ali pays late\n"),
        ("Sana's  shoe size is 43.", "- Sana's shoe size is 43\n  - measured in May\n"),
        ("SANA LIKES MELONS", "- Sana likes melons\n"),
    ],
)
async def test_lines_and_sections_go_and_the_old_file_is_kept(world: World, what: str, gone: str) -> None:
    world.file(PEOPLE, PAGE)
    done = await world.forget.carry_out(await world.plan(what))
    assert world.text(PEOPLE) == PAGE.replace(gone, "")
    [kept] = done.kept
    assert kept.startswith(f"{TRASH}/")
    assert world.text(kept) == PAGE
    assert kept in done.text()
    assert TRASH not in str(await world.library.find("Sana shoe melons"))
    if "shoe" in gone:
        assert await world.library.find("shoe") == []


async def test_a_plan_changes_nothing(world: World) -> None:
    world.file(PEOPLE, PAGE)
    plan = await world.plan("Sana likes melons")
    assert [(item.ref, item.text) for item in plan.items] == [(f"file:{PEOPLE}#L6", "- Sana likes melons")]
    assert world.text(PEOPLE) == PAGE
    assert not (world.library.workspace / TRASH).exists()


@pytest.mark.parametrize(
    ("path", "line", "what"),
    [
        ("memory.md", "- Omar drinks tea", "omar drinks tea"),
        (
            "bank/world.md",
            "- 2026-05-01: The shop closes at nine (file:x.md#L3, 2026-05-01)",
            "2026-05-01: The shop closes at nine",
        ),
        (
            "bank/entities/sana.md",
            "Sana lives in Riyadh. First seen 2026-05-01, last seen 2026-05-01.",
            "Sana lives in Riyadh",
        ),
        ("bank/entities/sana.md", "- [W] Sana lives in Riyadh (brain/x.md#L12, 2026-05-01)", "Sana lives in Riyadh"),
        (EPISODE, "- W @Sana: lives in Riyadh now", "lives in Riyadh now"),
        (EPISODE, "- O(c=0.95) @Omar: prefers mornings", "prefers mornings"),
        ("memory.md", "- كلمة عُمَر المفضلة: القهوة", "كلمه عمر المفضله القهوة"),
    ],
)
async def test_a_sentence_is_found_in_every_form_it_is_kept_in(world: World, path: str, line: str, what: str) -> None:
    world.file(path, f"# Page\n\n## Retain\n{line}\n- another line\n")
    plan = await world.plan(what)
    assert [item.ref for item in plan.items] == [f"file:{path}#L4"]


async def test_an_opinion_goes_with_what_stands_under_it(world: World) -> None:
    page = "# Opinions\n\n## Tea is best\n- confidence: 0.85\n- for: x.md#L1\n\n## Rain is fine\n- confidence: 0.5\n"
    world.file("bank/opinions.md", page)
    await world.forget.carry_out(await world.plan("tea is best"))
    assert world.text("bank/opinions.md") == "# Opinions\n\n## Rain is fine\n- confidence: 0.5\n"


async def test_what_is_forgotten_is_in_no_earlier_version_of_a_page(world: World) -> None:
    """The copies that reflection keeps of a page would bring it back."""
    line = "- [W] Sana's shoe size is 43 (brain/hippocampus/episodes/2026-11-02.md#L5, 2026-11-02)"
    world.file(PEOPLE, PAGE)
    world.file(
        ".history/bank/entities/Sana.md/20261103T000000-a.md", f"# Sana\n\n{line}\n- [W] Sana likes melons (x)\n"
    )
    world.file(f".history/{PEOPLE}/20261103T000000-b.md", PAGE)
    await world.forget.carry_out(await world.plan("Sana's shoe size is 43"))
    assert (
        world.text(".history/bank/entities/Sana.md/20261103T000000-a.md") == "# Sana\n\n- [W] Sana likes melons (x)\n"
    )
    assert "shoe size" not in world.text(f".history/{PEOPLE}/20261103T000000-b.md")
    assert "Sana likes melons" in world.text(f".history/{PEOPLE}/20261103T000000-b.md")


async def test_a_line_is_counted_as_it_was_when_its_reference_was_given(world: World) -> None:
    """A form feed or a line separator ends no line in any reference, so here neither."""
    world.file(PEOPLE, "# People\n\f\n- Ali\u2028pays late\n- Sana likes melons\n- Omar likes figs\n")
    await world.forget.carry_out(await world.plan(f"file:{PEOPLE}#L4"))
    assert world.text(PEOPLE) == "# People\n\f\n- Ali\u2028pays late\n- Omar likes figs\n"


async def test_several_matches_are_listed_and_nothing_is_removed(world: World) -> None:
    world.file(PEOPLE, PAGE)
    with pytest.raises(ToolFailure, match="Name one by its reference") as caught:
        await world.plan("melons")
    assert f"file:{PEOPLE}#L6" in str(caught.value)
    assert "conversation:c1#3" in str(caught.value)
    assert world.text(PEOPLE) == PAGE


async def test_all_that_say_exactly_the_sentence_go_together(world: World) -> None:
    world.file(PEOPLE, "# People\n- The garage code is 7719.\n")
    world.file("memory.md", "- the garage code is 7719\n- else\n")
    world.transcripts.add(a_conversation("c9", "the garage code is 7719"))
    await world.library.say("the garage code is 7719", conversation="c9")
    plan = await world.plan("The garage code is 7719")
    assert {item.ref for item in plan.items} == {
        f"file:{PEOPLE}#L2",
        "file:memory.md#L1",
        "conversation:c1#1",
        "conversation:c9#1",
    }
    done = await world.forget.carry_out(plan)
    assert done.messages == 2
    assert [message.n for message in await world.transcripts.messages("c1")] == [2, 3]
    assert await world.library.find("garage") == []


async def test_a_message_that_hardly_says_more_goes_and_a_long_one_is_named(world: World) -> None:
    world.file(PEOPLE, "# People\n- Nora moved to Jeddah\n")
    long = "We spoke of the whole summer, of trains and of the garden; Nora moved to Jeddah, the others stayed at home."
    world.transcripts.add(
        a_conversation("c8", "Remember that Nora moved to Jeddah!", "Saved: “Nora moved to Jeddah”", long)
    )
    for n, message in enumerate(await world.transcripts.messages("c8"), 1):
        await world.library.say(message.text, conversation="c8", n=n, role=message.role)
    plan = await world.plan("Nora moved to Jeddah")
    assert {item.ref for item in plan.items} == {f"file:{PEOPLE}#L2", "conversation:c8#1", "conversation:c8#2"}
    assert [item.ref for item in plan.mentions] == ["conversation:c8#3"]
    done = await world.forget.carry_out(plan)
    assert "conversation:c8#3" in done.text()
    assert [message.n for message in await world.transcripts.messages("c8")] == [3]


@pytest.mark.parametrize("what", ["", "   ", "!!", "nothing like this zyx"])
async def test_what_means_nothing_is_said_to_mean_nothing(world: World, what: str) -> None:
    with pytest.raises(ToolFailure):
        await world.plan(what)


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("conversation:nope#1", "no conversation"),
        ("conversation:c1#9", "has no message 9"),
        ("conversation:c1#1.1", "goes with its message"),
        ("file:agents.md#L1", "is no memory"),
        ("file:readlog/telegram/1.jsonl", "is no memory"),
        ("file:../hudhud.db", "not allowed"),
        ("file:nope.md#L1", "no file"),
        ("task:nope", "no task"),
    ],
)
async def test_a_wrong_reference_is_refused_in_one_sentence(world: World, what: str, sentence: str) -> None:
    with pytest.raises(ToolFailure, match=sentence):
        await world.plan(what)


async def test_a_persons_edit_in_between_survives(world: World) -> None:
    world.file(PEOPLE, PAGE)
    plan = await world.plan("Sana likes melons")
    world.file(PEOPLE, "# A new head\n" + PAGE + "- written just now\n")
    await world.forget.carry_out(plan)
    assert world.text(PEOPLE) == "# A new head\n" + PAGE.replace("- Sana likes melons\n", "") + "- written just now\n"


async def test_a_line_that_was_rewritten_in_between_stays(world: World) -> None:
    world.file(PEOPLE, PAGE)
    plan = await world.plan("Sana likes melons")
    world.file(PEOPLE, PAGE.replace("likes melons", "likes dates"))
    with pytest.raises(ToolFailure, match="does not read as it did"):
        await world.forget.carry_out(plan)
    assert "likes dates" in world.text(PEOPLE)


async def test_what_a_turn_left_elsewhere_goes_with_its_message(world: World) -> None:
    turn = Turn("t-1", "telegram:1", "c2", "the safe code is 7720, remember", Person("telegram:1", "Omar", "owner"),
                START, channel="telegram")  # fmt: skip
    call = ToolCall("1", "memory_save", {"fact": "safe code 7720"})
    result = TurnResult("t-1", "done", "Saved it.", ("Saved it.",), (ToolResult("1", True, "ok", "success"),))
    Hippocampus(world.library.workspace, ZONE).append_episode(turn, [call], result)
    BasalGanglia(world.library.workspace, ZONE).record_outcome(turn, [call], result.tool_results)
    world.file("brain/motor/tasks/TASK-t-1.md", "# TASK-t-1\n")
    world.file("brain/prefrontal/.debug/a-t-9.md", "# Prompt\n\n- Conversation: c2\n\nthe safe code is 7720\n")
    world.file("brain/prefrontal/.debug/b-t-8.md", "# Prompt\n\n- Conversation: c3\n")
    other = "## 23:00 [telegram] - hello\n- User: hello\n- Reply: hi\n"
    page = world.text(EPISODE)
    world.file(EPISODE, page + other)
    record, messages = a_conversation("c2", turn.text, "Saved it.")
    calls = (ToolCallRecord(1, call.name, call.args, "ok", "success"),)
    said: list[MessageRecord] = [
        replace(messages[0], turn_id="t-1"),
        replace(messages[1], turn_id="t-1", tool_calls=calls),
    ]
    transcripts = FakeTranscripts((record, said))
    forgetting = forget(world.library, transcripts)
    plan = await forgetting.plan(OWNER, "conversation:c2#")
    kinds = [item.ref for item in plan.also]
    assert any(EPISODE in ref for ref in kinds)
    assert any("basalganglia" in ref for ref in kinds)
    assert "file:brain/motor/tasks/TASK-t-1.md" in kinds
    await forgetting.carry_out(plan)
    assert world.text(EPISODE) == "# 2026-07-01\n\n" + other
    assert "7720" not in world.text("brain/basalganglia/2026-07-01.md")
    assert [path.name for path in (world.library.workspace / "brain/prefrontal/.debug").iterdir()] == ["b-t-8.md"]
    assert not (world.library.workspace / "brain/motor/tasks/TASK-t-1.md").exists()


async def test_the_owner_is_asked_about_what_goes_and_just_that_goes(world: World) -> None:
    world.file(PEOPLE, PAGE)
    await world.library.cortex.update_files()
    tool = Forgetting(world.forget, REDACT)
    asked = replace(context(), call_id="1", preview=True)
    args = {"what": "Sana likes melons"}
    assert await tool.memory_forget(asked, args) == f"- file:{PEOPLE}#L6  - Sana likes melons"
    assert world.text(PEOPLE) == PAGE
    world.file("memory.md", "- Sana likes melons\n")
    await world.library.cortex.update_files()
    await tool.memory_forget(replace(asked, preview=False), args)
    assert world.text(PEOPLE) == PAGE.replace("- Sana likes melons\n", "")
    assert world.text("memory.md") == "- Sana likes melons\n"
    with pytest.raises(ToolFailure, match="Only the owner"):
        await tool.memory_forget(replace(context(guest("telegram:8")), preview=True), args)


async def test_matches_and_previews_show_no_secret(world: World) -> None:
    world.file(PEOPLE, "# People\n- wifi password: hunter2 for the melons\n- melons of Sana\n")
    await world.library.cortex.update_files()
    tool = Forgetting(world.forget, REDACT)
    with pytest.raises(ToolFailure) as caught:
        await tool.memory_forget(context(), {"what": "melons"})
    assert "hunter2" not in str(caught.value)
    plan = await tool.plan(context(), {"what": f"file:{PEOPLE}#L2"})
    assert "hunter2" not in json.dumps(tool.as_json(plan))
