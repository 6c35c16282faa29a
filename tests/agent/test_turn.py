"""A turn goes through the regions in order, whatever the model and the tools do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.brain import Brain, build_brain
from agent.fence import spoken, unfence
from agent.thalamus import Thalamus
from agent.turn import PIPELINE, run_turn
from agent.types import CallContext, EarlierCall, JsonObject, Message, ProviderError, StreamChunk, ToolCall, ToolResult
from tests.fakes.memory import FakeCortex, a_hit
from tests.fakes.models import Say, ScriptedModel
from tests.fakes.skills import Notes, skill_folder
from tests.fakes.turns import GUEST, FakeClock, FakePort, a_turn

LOOK = ToolCall("c1", "look", {"word": "plan"})
KEEP = ToolCall("c2", "keep", {"text": "tea at five"})


Step = Say | Exception | asyncio.Event


class Stage:
    """A brain with a scripted model and the notes capability, and what happened in it."""

    def __init__(self, root: Path, script: Sequence[Step], rounds_max: int, notes: Notes) -> None:
        self.workspace = root / "workspace"
        self.model = ScriptedModel(*script)
        self.notes = notes
        self.steps: list[str] = []
        self.port = FakePort()
        clock = FakeClock()
        self.brain: Brain = build_brain(
            workspace=self.workspace,
            provider=self.model,
            cortex=FakeCortex([a_hit("conversation:c-0#4", "the plan")]),
            functions=notes.functions(),
            folders=[skill_folder(root / "skills")],
            zone=ZoneInfo("Asia/Riyadh"),
            now=clock,
            rounds_max=rounds_max,
            sleep=clock.sleep,
            trace=self.steps.append,
        )

    async def run(self, text: str = "where is the plan?", **fields: Any) -> Any:
        return await run_turn(self.brain, a_turn(text, **fields), self.port)

    def day(self, region: str) -> str:
        return next((self.workspace / "brain" / region).glob("2026-11-30.md")).read_text()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(*script: Step, rounds_max: int = 8, notes: Notes | None = None) -> Stage:
        stages.append(Stage(tmp_path, script, rounds_max, notes or Notes()))
        return stages[-1]

    yield make
    for made in stages:
        made.brain.close()


MakeStage = Callable[..., Stage]


async def test_a_plain_answer_passes_each_region_once(stage: MakeStage) -> None:
    on = stage(Say("Here", " it", " is."))
    result = await on.run()
    assert (result.status, result.reply, result.rounds, result.error) == ("done", "Here it is.", ("Here it is.",), None)
    assert on.steps == [step for step in PIPELINE if step not in PIPELINE[4:7]]
    assert on.port.shown == "Here it is."
    assert on.port.log == []
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.requests) == (10, 2, 1)
    assert "- Reply: Here it is.\n" in on.day("hippocampus/episodes")


async def test_a_round_of_tools_passes_the_regions_in_the_order_of_the_list(stage: MakeStage) -> None:
    on = stage(Say("Let me look.", calls=[LOOK]), Say("It is there."))
    on.notes.texts["plan"] = "in files/plan.pdf"
    result = await on.run()
    assert on.steps == [*PIPELINE[:7], *PIPELINE[1:4], *PIPELINE[7:]]
    assert result.reply == on.port.shown == "Let me look.\n\nIt is there."
    assert result.rounds == ("Let me look.", "It is there.")
    assert [(item.call_id, item.outcome) for item in result.tool_results] == [("c1", "success")]
    assert on.port.log == ["begin 1 'Let me look.' c1", "ended c1 success"]
    assert on.port.heard_rounds == [1]
    said, answered = on.model.prompts[1].messages[-2:]
    assert said == Message("assistant", "Let me look.", (LOOK,))
    assert (answered.role, answered.call_id, unfence(answered.text)) == ("tool", "c1", "in files/plan.pdf")
    assert on.model.prompts[1].system == on.model.prompts[0].system
    assert on.model.prompts[1].tools == on.model.prompts[0].tools
    tools = [(item.n, item.name, item.state) for item in on.port.segments if item.kind == "tool"]
    assert tools == [(1, "look", "running"), (1, "look", "success")]
    assert "- Tools: look (success)\n" in on.day("hippocampus/episodes")
    assert "| look | success\n" in on.day("basalganglia")
    assert "- Status: done\n" in (on.workspace / "brain/motor/tasks/TASK-t-1.md").read_text()


async def test_calls_are_recorded_before_they_run_and_results_before_they_are_used(stage: MakeStage) -> None:
    on = stage(Say(calls=[LOOK, KEEP]), Say("done"))
    ran_at_begin: list[int] = []
    asked_at_end: list[int] = []

    class Watching(FakePort):
        async def calls_begin(self, round: int, text: str, calls: Any) -> None:
            ran_at_begin.append(len(on.notes.ran))
            await super().calls_begin(round, text, calls)

        async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
            asked_at_end.append(len(on.model.prompts))
            await super().call_ended(call, result)

    on.port = Watching()
    await on.run()
    assert ran_at_begin == [0]
    assert asked_at_end == [1, 1]
    assert [name for name, _ in on.notes.ran] == ["look", "keep"]


async def test_interjections_are_heard_after_each_round_of_tools(stage: MakeStage) -> None:
    on = stage(Say(calls=[LOOK]), Say(calls=[replace(LOOK, id="c9")]), Say("both"))
    on.port.said = {1: ["and the map?", "</context>\n\nquickly"], 2: []}
    result = await on.run()
    assert on.port.heard_rounds == [1, 2]
    added = on.model.prompts[1].messages[-2:]
    assert [message.role for message in added] == ["user", "user"]
    assert [spoken(message.text) for message in added] == ["and the map?", "</context>\n\nquickly"]
    assert on.model.prompts[2].messages[: len(on.model.prompts[1].messages)] == on.model.prompts[1].messages
    assert result.reply == "both"
    assert "- User: where is the plan? and the map? </context> quickly\n" in on.day("hippocampus/episodes")


async def test_after_the_last_round_an_answer_without_tools_is_asked_for(stage: MakeStage) -> None:
    calls = [Say(calls=[replace(LOOK, id=f"c{n}")]) for n in range(4)]
    on = stage(*calls[:3], Say("all I have", calls=[KEEP]), rounds_max=3)
    result = await on.run()
    assert len(on.notes.ran) == 3
    assert [bool(prompt.tools) for prompt in on.model.prompts] == [True, True, True, False]
    assert "last round" in on.model.prompts[-1].messages[-1].text
    assert on.port.heard_rounds == [1, 2, 3]
    assert (result.status, result.reply) == ("done", "all I have")


@pytest.mark.parametrize(("answer", "outcome"), [(True, "success"), (False, "denied"), (None, "denied")])
async def test_the_owner_is_asked_and_no_answer_means_no(stage: MakeStage, answer: bool | None, outcome: str) -> None:
    call = ToolCall("c1", "keep", {"text": "tell everyone\u200b"})
    on = stage(Say(calls=[call]), Say("ok"))
    on.port.answers = [answer]
    result = await on.run()
    (question,) = on.port.questions
    assert "tell everyone\\u{200b}" in question.what
    assert (question.reason, question.asked_by) == ("It concerns everyone.", "Layla")
    assert result.tool_results[0].outcome == outcome
    assert on.notes.ran == ([("keep", call.args)] if answer else [])
    assert on.port.log[-1] == f"ended c1 {outcome}"
    told = on.model.prompts[1].messages[-1].text
    assert ("did not answer in time" in told) == (answer is None)
    assert ("does not allow" in told) == (answer is False)


async def test_where_nobody_can_be_asked_consent_is_refused_with_the_reason(stage: MakeStage) -> None:
    on = stage(Say(calls=[ToolCall("c1", "keep", {"text": "tell everyone"})]), Say("ok"))
    result = await on.run("[scheduled run: x]\ngo", origin="scheduled", may_ask=False)
    assert on.port.questions == []
    assert on.notes.ran == []
    assert result.tool_results[0].outcome == "denied"
    assert "It concerns everyone." in on.model.prompts[1].messages[-1].text


async def test_blocked_unknown_and_faulty_calls_get_a_result_and_do_not_run(stage: MakeStage) -> None:
    calls = [
        ToolCall("b", "keep", {"text": "wipe my disk"}),
        ToolCall("u", "fly", {}),
        ToolCall("f", "look", {"word": 3}),
        ToolCall("g", "look", {"word": "plan"}),
    ]
    on = stage(Say(calls=calls), Say("ok"))
    result = await on.run()
    assert [item.outcome for item in result.tool_results] == ["blocked", "failed", "failed", "success"]
    assert [item.call_id for item in result.tool_results] == ["b", "u", "f", "g"]
    assert on.notes.ran == [("look", {"word": "plan"})]
    told = [message.text for message in on.model.prompts[1].messages[-4:]]
    assert "It would wipe a disk." in told[0]
    assert "no tool" in told[1]
    assert "do not fit" in told[2]
    assert on.port.log[1:] == ["ended b blocked", "ended u failed", "ended f failed", "ended g success"]
    page = (on.workspace / "brain/motor/tasks/TASK-t-1.md").read_text()
    assert page.count("## Step ") == 4
    assert "| keep | blocked\n" in on.day("basalganglia")


async def test_a_tool_that_fails_is_told_to_the_model(stage: MakeStage) -> None:
    on = stage(Say(calls=[ToolCall("c1", "look", {"word": "broken"})]), Say("sorry"))
    result = await on.run()
    assert (result.status, result.tool_results[0].outcome) == ("done", "failed")
    assert unfence(on.model.prompts[1].messages[-1].text) == "The shelf is broken."


async def test_an_allowed_person_cannot_reach_the_owners_tools(stage: MakeStage) -> None:
    on = stage(Say(calls=[KEEP, LOOK]), Say("ok"))
    result = await on.run(person=GUEST)
    assert [item.outcome for item in result.tool_results] == ["blocked", "success"]
    assert [name for name, _ in on.notes.ran] == ["look"]
    assert [tool.name for tool in on.model.prompts[0].tools] == ["look"]


async def test_calls_that_only_read_run_side_by_side_and_others_one_by_one(stage: MakeStage) -> None:
    calls = [
        ToolCall("r1", "look", {"word": "one"}),
        ToolCall("r2", "look", {"word": "two"}),
        ToolCall("w1", "keep", {"text": "x"}),
        ToolCall("r3", "look", {"word": "three"}),
    ]
    events: list[str] = []
    second = asyncio.Event()

    class Slow(Notes):
        async def look(self, context: CallContext, args: JsonObject) -> str:
            events.append(f"+{args['word']}")
            if args["word"] == "one":
                await asyncio.wait_for(second.wait(), 5)
            second.set()
            events.append(f"-{args['word']}")
            return f"about {args['word']}"

        async def keep(self, context: CallContext, args: JsonObject) -> str:
            events.append("keep")
            return "kept"

    on = stage(Say(calls=calls), Say("ok"), notes=Slow())
    result = await on.run()
    assert events == ["+one", "+two", "-two", "-one", "keep", "+three", "-three"]
    assert [item.text for item in result.tool_results] == ["about one", "about two", "kept", "about three"]


async def test_a_broken_off_run_goes_on_from_what_it_had_done(stage: MakeStage) -> None:
    earlier = (
        EarlierCall(
            1, "Let me look.", ToolCall("e1", "look", {"word": "x"}), ToolResult("e1", True, "saw x", "success")
        ),
        EarlierCall(2, "", ToolCall("e2", "look", {"word": "y"}), ToolResult("e2", True, "saw y", "success")),
        EarlierCall(2, "", ToolCall("e3", "keep", {"text": "z"}), None),
    )
    on = stage(Say(calls=[ToolCall("e1", "look", {"word": "again"})]), Say("done"))
    result = await on.run(earlier_calls=earlier)
    before = on.model.prompts[0].messages[-5:]
    assert before[0] == Message("assistant", "Let me look.", (earlier[0].call,))
    assert (before[1].call_id, unfence(before[1].text)) == ("e1", "saw x")
    assert before[2] == Message("assistant", "", (earlier[1].call, earlier[2].call))
    assert unfence(before[3].text) == "saw y"
    assert before[4] == Message("tool", "interrupted, not known whether it ran", call_id="e3")
    assert on.notes.ran == [("look", {"word": "again"})]
    assert on.port.log == ["ended e3 interrupted", "begin 3 '' call_1", "ended call_1 success"]
    assert [item.outcome for item in result.tool_results] == ["success", "success", "interrupted", "success"]
    assert result.reply == "Let me look.\n\ndone"
    assert result.rounds == ("Let me look.", "", "", "done")
    assert [item.n for item in on.port.segments if item.kind == "tool"] == [4, 4]
    assert "- Tools: look (success), look (success), keep (interrupted), look (success)\n" in on.day(
        "hippocampus/episodes"
    )


async def test_earlier_rounds_count_against_the_limit(stage: MakeStage) -> None:
    earlier = tuple(
        EarlierCall(n, "", ToolCall(f"e{n}", "look", {}), ToolResult(f"e{n}", True, "x", "success")) for n in (1, 2)
    )
    on = stage(Say("that is all"), rounds_max=2)
    result = await on.run(earlier_calls=earlier)
    assert on.model.prompts[0].tools == ()
    assert result.reply == "that is all"


async def test_a_stop_ends_the_running_tool_and_passes_through(stage: MakeStage) -> None:
    started = asyncio.Event()
    ended = asyncio.Event()

    class Hanging(Notes):
        async def keep(self, context: CallContext, args: JsonObject) -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"

    on = stage(Say("Wait.", calls=[KEEP]), notes=Hanging())
    task = asyncio.create_task(on.run())
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert on.port.shown == "Wait."
    assert on.port.log == ["begin 1 'Wait.' c2"]
    assert "- Status: stopped\n" in (on.workspace / "brain/motor/tasks/TASK-t-1.md").read_text()
    assert not (on.workspace / "brain/hippocampus").exists()


async def test_a_stop_while_the_model_speaks_ends_its_stream(stage: MakeStage) -> None:
    on = stage(asyncio.Event())
    spoke = asyncio.Event()

    class Listening(FakePort):
        def emit(self, segment: Any) -> None:
            super().emit(segment)
            spoke.set()

    on.port = Listening()
    task = asyncio.create_task(on.run())
    await asyncio.wait_for(spoke.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert on.port.shown.startswith("half a")


async def test_a_model_that_cannot_be_reached_is_one_plain_sentence(stage: MakeStage) -> None:
    failure = ProviderError("The key was refused; check it.", transient=False, arabic="رُفض المفتاح؛ تحقق منه.")
    on = stage(Say("Let me look.", calls=[LOOK]), failure, failure)
    result = await on.run()
    assert (result.status, result.reply) == ("failed", "The key was refused; check it.")
    assert result.rounds == ("Let me look.", "The key was refused; check it.")
    assert result.error == "ProviderError: The key was refused; check it."
    assert [item.outcome for item in result.tool_results] == ["success"]
    assert "- Reply: The key was refused; check it.\n" in on.day("hippocampus/episodes")
    assert (await on.run("أين الخطة؟")).reply == "رُفض المفتاح؛ تحقق منه."


async def test_a_stream_that_begins_again_keeps_the_earlier_rounds(stage: MakeStage) -> None:
    on = stage(Say("First.", calls=[LOOK]))

    class Resetting(Thalamus):
        async def stream_reply(self, prompt: Any, retried: Any = None) -> Any:
            if len(on.model.prompts) == 0:
                async for chunk in super().stream_reply(prompt, retried):
                    yield chunk
                return
            for chunk in (
                StreamChunk("text", "half "),
                StreamChunk("reset"),
                StreamChunk("text", "whole"),
                StreamChunk("stop", "end"),
            ):
                yield chunk

    on.brain = replace(on.brain, thalamus=Resetting(on.model))
    result = await on.run()
    assert result.reply == on.port.shown == "First.\n\nwhole"


@pytest.mark.parametrize(
    ("text", "words"), [("where is it?", "The model gave no answer"), ("أين هي؟", "لم يُعطِ النموذج جوابًا")]
)
async def test_an_empty_answer_says_so(stage: MakeStage, text: str, words: str) -> None:
    on = stage(Say("  \n"))
    result = await on.run(text)
    assert result.status == "done"
    assert result.reply.startswith(words)
    assert result.reply in on.port.shown


async def test_an_answer_that_was_cut_off_says_so(stage: MakeStage) -> None:
    on = stage(Say("Once upon a", stop="length"))
    result = await on.run("tell me a story")
    assert result.reply == on.port.shown
    assert result.reply.startswith("Once upon a\n\n(The answer ends here")


class DatabaseGone(Exception):
    """What a port raises that can no longer record."""


class ForgetfulPort(FakePort):
    """Cannot record that calls begin, or that they ended."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    async def calls_begin(self, round: int, text: str, calls: Any) -> None:
        if self.method == "calls_begin":
            raise DatabaseGone

    async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
        if self.method == "call_ended":
            raise DatabaseGone


@pytest.mark.parametrize(("method", "ran"), [("calls_begin", 0), ("call_ended", 2)])
async def test_what_the_port_raises_passes_through(stage: MakeStage, method: str, ran: int) -> None:
    on = stage(Say(calls=[LOOK, replace(LOOK, id="c2")]))
    on.port = ForgetfulPort(method)
    with pytest.raises(DatabaseGone):
        await on.run()
    assert len(on.notes.ran) == ran
    assert len(on.model.prompts) == 1
