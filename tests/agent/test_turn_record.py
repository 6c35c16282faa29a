"""What a turn leaves behind when it is long, stopped or in trouble: cut prompts, the event log, its episode."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.brain import Brain, build_brain
from agent.fence import unfence
from agent.prompts import summary_instructions
from agent.summaries import HEADINGS, is_summary
from agent.turn import run_turn
from agent.types import (
    CallContext,
    ContextOverflow,
    JsonObject,
    Message,
    Prompt,
    ProviderError,
    StreamChunk,
    ToolCall,
    TurnResult,
)
from tests.fakes.memory import FakeCortex, a_hit
from tests.fakes.models import Say, ScriptedModel
from tests.fakes.skills import Notes, skill_folder
from tests.fakes.turns import GUEST, FakeClock, FakePort, a_turn

CONTEXT = 8_000
NOTES = "\n".join(f"## {heading}\n20 of 43 mails are answered" for heading in HEADINGS)
EVENT = re.compile(r"^## [\d:.]+ \[turn t-1\]\n\n- (\S+) (\{.*\})$", re.MULTILINE)
Step = Say | Exception | asyncio.Event


class Writing(ScriptedModel):
    """A scripted model that also sums up when it is asked to, outside the script."""

    def __init__(self, *script: Step, notes: str = NOTES) -> None:
        super().__init__(*script)
        self.notes = notes
        self.summed_up: list[Prompt] = []

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        if prompt.system == summary_instructions():
            self.summed_up.append(prompt)
            for chunk in Say(self.notes).chunks():
                yield chunk
            return
        async for chunk in super().stream(prompt):
            yield chunk


class Stage:
    def __init__(self, root: Path, model: ScriptedModel, notes: Notes, context_tokens: int) -> None:
        self.workspace = root / "workspace"
        self.model = model
        self.port = FakePort()
        clock = FakeClock()
        self.brain: Brain = build_brain(
            workspace=self.workspace,
            provider=model,
            cortex=FakeCortex([a_hit("conversation:c-0#4", "the plan")]),  # type: ignore[arg-type]
            functions=notes.functions(),
            folders=[skill_folder(root / "skills")],
            zone=ZoneInfo("Asia/Riyadh"),
            now=clock,
            context_tokens=context_tokens,
            sleep=clock.sleep,
        )

    async def run(self, **fields: Any) -> TurnResult:
        return await run_turn(self.brain, a_turn("answer all 43 mails", **fields), self.port)

    def events(self) -> list[tuple[str, Any]]:
        """Closes the brain and reads the event log."""
        self.brain.close()
        text = (self.workspace / "brain/corpus/2026-11-30.log.md").read_text(encoding="utf-8")
        return [(event, json.loads(facts)) for event, facts in EVENT.findall(text)]

    def day(self, region: str) -> str:
        return (self.workspace / "brain" / region / "2026-11-30.md").read_text(encoding="utf-8")


MakeStage = Callable[..., Stage]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[MakeStage]:
    made: list[Stage] = []

    def make(model: ScriptedModel, notes: Notes | None = None, context_tokens: int = CONTEXT) -> Stage:
        made.append(Stage(tmp_path, model, notes or Notes(), context_tokens))
        return made[-1]

    yield make
    for one in made:
        one.brain.close()


def mails(count: int) -> tuple[Notes, list[Say]]:
    """So many rounds, each reading a long mail."""
    notes = Notes()
    notes.texts = {str(n): f"mail {n} " + "text " * 1_000 for n in range(count)}
    return notes, [Say(f"Mail {n}.", calls=[ToolCall(f"m{n}", "look", {"word": str(n)})]) for n in range(count)]


async def test_a_task_of_many_steps_is_finished_although_it_is_longer_than_the_model(stage: MakeStage) -> None:
    notes, rounds = mails(7)
    model = Writing(*rounds, Say("All done."))
    on = stage(model, notes)
    result = await on.run()
    assert result.status == "done"
    assert result.reply.endswith("All done.")
    assert len(notes.ran) == 7
    assert model.summed_up
    last = model.prompts[-1].messages
    (summary,) = [message for message in last if is_summary(message)]
    assert "20 of 43 mails" in summary.text
    assert "answer all 43 mails" in last[0].text
    assert unfence(last[-1].text) == notes.texts["6"] or is_summary(last[-1])
    assert "memory_get task:t-1#detail1" in next(message.text for message in last if message.call_id == "m0")
    assert result.usage.requests == len(model.prompts) + len(model.summed_up)
    assert NOTES not in on.port.shown
    assert [facts["summary"] for event, facts in on.events() if event == "compaction"] == ["model"] * len(
        model.summed_up
    )


async def test_what_was_cut_can_be_opened_under_the_reference_that_is_named(stage: MakeStage) -> None:
    notes, rounds = mails(5)
    model = Writing(*rounds, Say("Done."))
    on = stage(model, notes)
    await on.run()
    detail = (on.workspace / "brain/motor/tasks/TASK-t-1-detail.log").read_text()
    assert f"=== step 1 | look | {len(notes.texts['0'])} characters ===\n{notes.texts['0']}" in detail


async def test_an_allowed_person_is_not_sent_to_the_owners_tasks(stage: MakeStage) -> None:
    notes, rounds = mails(7)
    model = Writing(*rounds, Say("Done."))
    await stage(model, notes).run(person=GUEST)
    whole = "".join(message.text for message in model.prompts[-1].messages)
    assert "the rest: conversation_read current" in whole
    assert "task:t-1" not in whole


async def test_a_prompt_the_service_finds_too_long_is_cut_and_sent_once_more(stage: MakeStage) -> None:
    history = tuple(Message("user" if n % 2 == 0 else "assistant", f"{n} " + "word " * 500) for n in range(8))
    too_long = ContextOverflow("The request is too long for this model.", transient=False, status=400)
    model = Writing(too_long, Say("It fits."))
    on = stage(model, context_tokens=100_000)
    result = await on.run(history=history)
    assert (result.status, result.reply) == ("done", "It fits.")
    first, second = (sum(len(message.text) for message in prompt.messages) for prompt in model.prompts)
    assert second < 0.6 * first
    assert model.prompts[1].system == model.prompts[0].system
    assert model.prompts[1].messages[-1] == model.prompts[0].messages[-1]
    assert [facts["forced"] for event, facts in on.events() if event == "compaction"] == [True]


async def test_a_service_that_finds_the_cut_prompt_too_long_too_is_not_asked_again(stage: MakeStage) -> None:
    too_long = ContextOverflow("The request is too long for this model.", transient=False, status=413)
    model = Writing(too_long, too_long)
    result = await stage(model).run()
    assert (result.status, result.reply) == ("failed", "The request is too long for this model.")
    assert len(model.prompts) == 2


async def test_the_event_log_tells_what_happened_and_not_what_was_said(stage: MakeStage) -> None:
    calls = [ToolCall("c1", "look", {"word": "secret-word"}), ToolCall("c2", "keep", {"text": "wipe my disk"})]
    busy = ProviderError("The model service is busy.", transient=True)
    on = stage(ScriptedModel(Say("Let me look.", calls=calls), busy, Say("There it is.")))
    on.brain.thalamus._sleep = FakeClock().sleep  # type: ignore[assignment]
    await on.run()
    events = on.events()
    assert [event for event, _ in events] == [
        *("context", "model", "verdict", "verdict", "tool", "tool", "retry", "model", "reply"),
    ]
    facts = dict(events)
    assert facts["retry"] == {"error": "The model service is busy.", "pause_seconds": 5.0}
    assert facts["tool"]["outcome"] == "blocked"
    assert facts["verdict"] == {"tool": "keep", "decision": "block", "reason": "It would wipe a disk."}
    assert facts["reply"]["status"] == "done"
    text = json.dumps(events)
    assert not any(said in text for said in ("43 mails", "secret-word", "There it is", "wipe my"))


async def test_a_failure_stands_in_the_event_log(stage: MakeStage) -> None:
    on = stage(ScriptedModel(ProviderError("The key was refused; check it.", transient=False)))
    await on.run()
    assert on.events()[-1] == ("failure", {"error": "ProviderError: The key was refused; check it."})


class Hanging(Notes):
    """Its `keep` never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()

    async def keep(self, context: CallContext, args: JsonObject) -> str:
        self.started.set()
        await asyncio.Event().wait()
        return "never"


@pytest.mark.parametrize("by_a_person", [True, False])
async def test_a_turn_that_a_person_stopped_is_remembered_and_one_that_will_go_on_is_not(
    stage: MakeStage, by_a_person: bool
) -> None:
    notes = Hanging()
    calls: Sequence[ToolCall] = [ToolCall("c1", "look", {"word": "x"}), ToolCall("c2", "keep", {"text": "tea"})]
    on = stage(ScriptedModel(Say("One moment.", calls=calls)), notes)
    task = asyncio.create_task(on.run())
    await asyncio.wait_for(notes.started.wait(), 5)
    on.port.stopped = by_a_person
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if not by_a_person:
        assert not (on.workspace / "brain/hippocampus").exists()
        assert not (on.workspace / "brain/basalganglia").exists()
        return
    episode = on.day("hippocampus/episodes")
    assert "- User: answer all 43 mails\n- Tools: look (success)\n- Reply: One moment. (stopped)\n" in episode
    assert "| look | success\n" in on.day("basalganglia")
    assert on.events()[-1][1]["status"] == "stopped"
