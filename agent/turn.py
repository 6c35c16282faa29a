"""One turn: takes a message through the regions in order. The only file that calls region after region."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agent.amygdala import shown
from agent.brain import Brain
from agent.fence import fence, said_meanwhile
from agent.limits import DETAIL_CHARS
from agent.lines import flat, one_line
from agent.prompts import sentences
from agent.types import (
    Message,
    Outcome,
    Prompt,
    ProviderError,
    Question,
    Segment,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    TurnPort,
    TurnResult,
    TurnStatus,
    Usage,
    Verdict,
)

PIPELINE = (
    "prefrontal.assemble_context",
    "thalamus.stream_reply",
    "broca.speak",
    "wernicke.parse_calls",
    "amygdala.classify",
    "motor.run_task",
    "cerebellum.execute_tool",
    "hippocampus.append_episode",
    "basalganglia.record_outcome",
)
"""The regions in the order a message passes them; the second to the seventh repeat for each round of tools."""


async def run_turn(brain: Brain, turn: Turn, port: TurnPort) -> TurnResult:
    """Answers one turn. The result's status is `done`, or `failed` when the model could not be reached.

    The calls of a round are recorded before any runs, each result before the model sees it. Calls of an earlier,
    broken-off run of this turn are given to the model as made and are not run again. At most `brain.rounds_max`
    rounds of tools, then one answer without. Cancellation passes through after a running tool is cancelled; what
    `port` raises passes through too.
    """
    run = _Run(brain, turn, port)
    try:
        return await run.answer()
    finally:
        brain.motor.end_task(turn, run.status)


@dataclass(slots=True)
class _Round:
    """What the model said in one round."""

    text: str
    calls: tuple[ToolCall, ...]
    cut: bool


@dataclass(slots=True)
class _Run:
    """The state of one running turn."""

    brain: Brain
    turn: Turn
    port: TurnPort
    status: TurnStatus = "stopped"
    usage: Usage = field(default_factory=Usage)
    rounds: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    heard: list[str] = field(default_factory=list[str])
    speaking: bool = False
    """Some text of the round that runs was passed on."""

    async def answer(self) -> TurnResult:
        error: str | None = None
        try:
            self._trace("prefrontal.assemble_context")
            prompt = await self.brain.prefrontal.assemble_context(self.turn)
            await self._rounds(prompt)
            reply = self._said()
            self.status = "done"
        except ProviderError as failure:
            arabic = failure.arabic and sentences.is_arabic(self.turn.text)
            reply = failure.arabic if arabic else str(failure)
            self.rounds.append(reply)
            error = f"{type(failure).__name__}: {failure}"
            self.status = "failed"
        result = TurnResult(
            self.turn.id, self.status, reply, tuple(self.rounds), tuple(self.results), self.usage, error
        )
        whole = replace(self.turn, text="\n\n".join((self.turn.text, *self.heard))) if self.heard else self.turn
        self._trace("hippocampus.append_episode")
        self.brain.hippocampus.append_episode(whole, self.calls, result)
        self._trace("basalganglia.record_outcome")
        self.brain.basalganglia.record_outcome(self.turn, self.calls, self.results)
        return result

    async def _rounds(self, prompt: Prompt) -> None:
        """Model and tools in turn, until the model has answered."""
        messages = [*prompt.messages, *await self._earlier()]
        number = max((earlier.round for earlier in self.turn.earlier_calls), default=0) + 1
        while True:
            last = number > self.brain.rounds_max
            if last:
                messages.append(Message("user", sentences.LAST_ROUND))
            asked = replace(prompt, messages=tuple(messages), tools=() if last else prompt.tools)
            said = await self._ask_model(asked)
            if last or not said.calls:
                self._close(said)
                return
            self.rounds.append(said.text)
            messages.append(Message("assistant", said.text, said.calls))
            await self.port.calls_begin(number, said.text, said.calls)
            results = await self._run_calls(said.calls)
            messages += [_answered(call, result) for call, result in zip(said.calls, results, strict=True)]
            for text in await self.port.heard(number):
                self.heard.append(text)
                messages.append(Message("user", said_meanwhile(text)))
            number += 1

    async def _ask_model(self, prompt: Prompt) -> _Round:
        """One call of the model, passed on as it streams."""
        speech = self.brain.broca.begin()
        collector = self.brain.wernicke.begin()
        stop = ""
        self.speaking = False
        self._trace("thalamus.stream_reply")
        chunks = self.brain.thalamus.stream_reply(prompt)
        async with aclosing(chunks):
            self._trace("broca.speak")
            async for chunk in chunks:
                if chunk.usage is not None:
                    self.usage += chunk.usage
                elif chunk.kind == "stop":
                    stop = chunk.text
                collector.add(chunk)
                for segment in speech.speak(chunk):
                    self._emit(segment)
        for segment in speech.finish():
            self._emit(segment)
        self._trace("wernicke.parse_calls")
        taken = {call.id for call in self.calls}
        calls = self.brain.wernicke.parse_calls(collector, prompt.tools, taken)
        return _Round(speech.text, calls, cut=stop == "length")

    async def _earlier(self) -> list[Message]:
        """What an earlier run of this turn said and called, for the model to go on from."""
        messages: list[Message] = []
        answers: list[Message] = []
        unknown: list[tuple[ToolCall, ToolResult]] = []
        current = 0
        for earlier in sorted(self.turn.earlier_calls, key=lambda earlier: earlier.round):
            result = earlier.result
            if result is None:
                result = ToolResult(earlier.call.id, False, sentences.INTERRUPTED, "interrupted")
                unknown.append((earlier.call, result))
            if earlier.round != current:
                current = earlier.round
                messages += [*answers, Message("assistant", earlier.round_text, ())]
                answers = []
                self.rounds.append(earlier.round_text)
            messages[-1] = replace(messages[-1], calls=(*messages[-1].calls, earlier.call))
            answers.append(_answered(earlier.call, result))
            self.calls.append(earlier.call)
            self.results.append(result)
        for call, result in unknown:
            await self.port.call_ended(call, result)
        return [*messages, *answers]

    async def _run_calls(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Runs the calls of one round: neighbours that only read side by side, all others one after the other."""
        results: list[ToolResult] = []
        reads: list[tuple[int, ToolCall, ToolSpec]] = []
        first = len(self.calls) + 1
        for number, call in enumerate(calls, first):
            spec = self.brain.cerebellum.spec(call.name)
            verdict = self._classify(call, spec)
            if spec is not None and spec.read_only and call.fault is None and verdict.decision == "safe":
                reads.append((number, call, spec))
                continue
            results += await self._run_side_by_side(reads)
            reads = []
            results.append(await self._run_one(number, call, spec, verdict))
        results += await self._run_side_by_side(reads)
        self.calls += calls
        self.results += results
        return results

    def _classify(self, call: ToolCall, spec: ToolSpec | None) -> Verdict:
        if spec is None:
            return Verdict("safe")
        self._trace("amygdala.classify")
        return self.brain.amygdala.classify(call, spec, self.turn)

    async def _run_side_by_side(self, reads: Sequence[tuple[int, ToolCall, ToolSpec]]) -> list[ToolResult]:
        if len(reads) < 2:
            return [await self._run(number, call, spec) for number, call, spec in reads]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run(number, call, spec)) for number, call, spec in reads]
        except BaseExceptionGroup as failures:
            # Only the port can raise here, and one reason is enough: the caller knows nothing of side by side.
            raise failures.exceptions[0] from failures
        return [task.result() for task in tasks]

    async def _run_one(self, number: int, call: ToolCall, spec: ToolSpec | None, verdict: Verdict) -> ToolResult:
        """Runs a call, or says why not. Rights go before faults: what is not allowed is not corrected either."""
        if verdict.decision == "block":
            return await self._refuse(number, call, sentences.blocked(verdict.reason), "blocked")
        if spec is None or call.fault is not None:
            return await self._refuse(number, call, call.fault or f"There is no tool named {call.name}.", "failed")
        if verdict.decision == "confirm":
            denial = await self._ask_owner(call, verdict)
            if denial is not None:
                return await self._refuse(number, call, denial, "denied")
        return await self._run(number, call, spec)

    async def _ask_owner(self, call: ToolCall, verdict: Verdict) -> str | None:
        """None when the owner agrees, else what the model reads. No answer means no."""
        if not self.turn.may_ask:
            return sentences.cannot_ask(verdict.reason)
        who = one_line(self.turn.person.name) or self.turn.person.id
        answer = await self.port.ask(Question(shown(call), verdict.reason, who))
        if answer is None:
            return sentences.UNANSWERED
        return None if answer else sentences.DENIED

    async def _run(self, number: int, call: ToolCall, spec: ToolSpec) -> ToolResult:
        self.port.emit(Segment("tool", n=number, name=call.name, state="running", detail=_detail(call)))
        self._trace("motor.run_task")
        return await self._ended(number, call, await self.brain.motor.run_task(self.turn, call, spec))

    async def _refuse(self, number: int, call: ToolCall, text: str, outcome: Outcome) -> ToolResult:
        result = ToolResult(call.id, False, text, outcome, attempts=0)
        self.brain.motor.note_task(self.turn, call, result)
        return await self._ended(number, call, result)

    async def _ended(self, number: int, call: ToolCall, result: ToolResult) -> ToolResult:
        await self.port.call_ended(call, result)
        self.port.emit(Segment("tool", n=number, name=call.name, state=result.outcome, detail=_detail(call)))
        return result

    def _close(self, said: _Round) -> None:
        """Keeps the final text; an answer that is empty or cut off says so itself."""
        text = said.text
        if not text.strip():
            text = sentences.empty_answer(self.turn.text)
            self._emit(Segment("text", text))
        elif said.cut:
            ending = f"\n\n{sentences.cut_answer(self.turn.text)}"
            self._emit(Segment("text", ending))
            text += ending
        self.rounds.append(text)

    def _emit(self, segment: Segment) -> None:
        """Passes a segment on; the texts of the rounds are apart by a blank line, and a reset voids one round only."""
        if segment.kind == "reset":
            self.speaking = False
            before = self._said()
            self.port.emit(segment)
            if before:
                self.port.emit(Segment("text", before))
            return
        if not self.speaking and self._said():
            self.port.emit(Segment("text", "\n\n"))
        self.speaking = True
        self.port.emit(segment)

    def _said(self) -> str:
        """The texts of all rounds so far, as they are sent."""
        return "\n\n".join(text.strip() for text in self.rounds if text.strip())

    def _trace(self, step: str) -> None:
        if self.brain.trace is not None:
            self.brain.trace(step)


def _answered(call: ToolCall, result: ToolResult) -> Message:
    """A result as the model reads it: what a tool brought is data, what the program says is not."""
    ran = result.outcome in {"success", "failed"} and call.fault is None
    outcome = "" if result.ok else result.outcome
    text = fence(result.text, f"tool {call.name}", outcome=outcome) if ran else result.text
    return Message("tool", text, call_id=call.id)


def _detail(call: ToolCall) -> str:
    """The arguments on one line."""
    return flat(", ".join(f"{key}: {value}" for key, value in call.args.items()), DETAIL_CHARS)
