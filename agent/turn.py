"""One turn: takes a message through the regions in order. The only file that calls region after region."""

# long because: all steps of a turn are here, so that no other file calls region after region.
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agent.amygdala import shown
from agent.brain import Brain
from agent.compaction import Fitted
from agent.fence import escape, fence, said_meanwhile
from agent.limits import CAPABILITY_BODY_TOKENS_MAX, CUT_OFF_RETRIES_MAX, DETAIL_CHARS, TASK_PREVIEW_CHARS
from agent.lines import flat, one_line
from agent.motor import call_context
from agent.prompts import sentences
from agent.thalamus import Thalamus
from agent.tokens import clip
from agent.types import (
    ContextOverflow,
    JsonObject,
    Message,
    NoNetwork,
    Outcome,
    Prompt,
    ProviderError,
    Question,
    Segment,
    ToolCall,
    ToolFailure,
    ToolResult,
    ToolSpec,
    Turn,
    TurnPort,
    TurnResult,
    TurnStatus,
    Usage,
    Verdict,
)
from agent.usage import ModelCall, price

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
    """Answers one turn. The result's status is `done`, or `failed` when the model could not be reached or its calls
    were cut off again and again.

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
    reasoning: JsonObject | None


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
    ended: list[tuple[ToolCall, ToolResult]] = field(default_factory=list[tuple[ToolCall, ToolResult]])
    """The calls of the round that runs which have come to an end."""
    heard: list[str] = field(default_factory=list[str])
    speaking: bool = False
    """Some text of the round that runs was passed on."""
    outside: list[ToolCall] = field(default_factory=list[ToolCall])
    """Calls whose results, texts from outside, the model has read."""
    fault: str | None = None
    """Why the turn ended without what was asked for, for the log; the person was told."""

    async def answer(self) -> TurnResult:
        error: str | None = None
        try:
            self._trace("prefrontal.assemble_context")
            prompt = await self.brain.prefrontal.assemble_context(self.turn)
            self._note("context", messages=len(prompt.messages), tools=len(prompt.tools))
            await self._rounds(prompt)
            reply = self._said()
            self.status = "failed" if self.fault else "done"
            error = self.fault
        except NoNetwork as failure:
            # Nothing was asked yet: the messages can wait for the line.
            return TurnResult(self.turn.id, "failed", "", tuple(self.rounds), error=str(failure), waits=True)
        except ProviderError as failure:
            arabic = failure.arabic and sentences.is_arabic(self.turn.text)
            reply = failure.arabic if arabic else str(failure)
            self.rounds.append(reply)
            error = f"{type(failure).__name__}: {failure}"
            self.status = "failed"
        except asyncio.CancelledError:
            # When the program ends, the turn goes on at the next start; a turn that a person stopped is over.
            if self.port.stopped:
                self.calls += [call for call, _ in self.ended]
                self.results += [result for _, result in self.ended]
                self._remember(self._result(self._said(), None))
            raise
        return self._remember(self._result(reply, error))

    @property
    def thalamus(self) -> Thalamus:
        """The way to the model of this turn: the owner's usual one, or the one the owner chose for a job."""
        model = self.turn.model
        return self.brain.thalamus if not model or self.brain.chosen is None else self.brain.chosen(model)

    def _result(self, reply: str, error: str | None) -> TurnResult:
        rounds, results = tuple(self.rounds), tuple(self.results)
        return TurnResult(self.turn.id, self.status, reply, rounds, results, self.usage, error)

    def _remember(self, result: TurnResult) -> TurnResult:
        whole = replace(self.turn, text="\n\n".join((self.turn.text, *self.heard))) if self.heard else self.turn
        self._trace("hippocampus.append_episode")
        self.brain.hippocampus.append_episode(whole, self.calls, result)
        self._trace("basalganglia.record_outcome")
        self.brain.basalganglia.record_outcome(self.turn, self.calls, self.results)
        tokens = {"in": self.usage.input_tokens, "out": self.usage.output_tokens}
        self._note("reply", status=result.status, chars=len(result.reply), calls=len(self.calls), tokens=tokens)
        if result.error:
            self._note("failure", error=result.error)
        return result

    async def _rounds(self, prompt: Prompt) -> None:
        """Model and tools in turn, until the model has answered."""
        messages = [*prompt.messages, *await self._earlier()]
        number = max((earlier.round for earlier in self.turn.earlier_calls), default=0) + 1
        cut_off = 0
        tools, instructed = prompt.tools, self._loaded()
        while True:
            last = number > self.brain.rounds_max
            if last:
                messages.append(Message("user", sentences.LAST_ROUND))
            asked = replace(prompt, messages=tuple(messages), tools=() if last else tools)
            answered, said = await self._ask(asked)
            messages = list(answered.messages)
            cut_off = cut_off + 1 if any(call.cut_off for call in said.calls) else 0
            if last or not said.calls or cut_off > CUT_OFF_RETRIES_MAX:
                self._close(said, cut_off=cut_off > CUT_OFF_RETRIES_MAX)
                return
            self.rounds.append(said.text)
            messages.append(Message("assistant", said.text, said.calls, reasoning=said.reasoning))
            await self.port.calls_begin(number, said.text, said.calls)
            results = await self._run_calls(said.calls)
            first = len(self.calls) - len(results) + 1
            for n, (call, result) in enumerate(zip(said.calls, results, strict=True), first):
                messages.append(replace(_answered(call, result), ref=self._ref(n, result)))
            for text in await self.port.heard(number):
                self.heard.append(text)
                messages.append(Message("user", said_meanwhile(text)))
            loaded = self._loaded()
            messages += [_instructions(*body) for body in loaded if body not in instructed]
            tools, instructed = self._tools(), loaded
            number += 1

    def _tools(self) -> tuple[ToolSpec, ...]:
        """What the model is shown now: tools that were loaded meanwhile stand at the end."""
        if self.turn.origin == "scheduled":
            return self.brain.cerebellum.light(self.turn)
        return self.brain.cerebellum.definitions(self.turn.person.rights, self.turn.conversation_id)

    def _loaded(self) -> tuple[tuple[str, str], ...]:
        return self.brain.cerebellum.loaded_bodies(self.turn.person.rights, self.turn.conversation_id)

    async def _ask(self, prompt: Prompt) -> tuple[Prompt, _Round]:
        """One call of the model. Messages that are too many for it are cut before; when the service still finds them
        too many, once more. With the answer comes the prompt it was given to."""
        fitted = await self._fit(prompt)
        try:
            return fitted.prompt, await self._ask_model(fitted)
        except ContextOverflow:
            fitted = await self._fit(fitted.prompt, force=True)
        return fitted.prompt, await self._ask_model(fitted)

    async def _fit(self, prompt: Prompt, *, force: bool = False) -> Fitted:
        fitted = await self.brain.compaction.fit(prompt, self._ask_aside, force=force)
        if fitted.cut:
            tokens = {"before": fitted.before, "after": fitted.estimated}
            self._note("compaction", tokens=tokens, summary=fitted.summary, forced=force)
        return fitted

    async def _ask_aside(self, prompt: Prompt) -> str:
        """What the model answers to a prompt of the program's own: nobody sees it, its tokens count."""
        pieces: list[str] = []
        await self._check_budget()
        async with aclosing(self.thalamus.stream_reply(prompt, self._retried)) as chunks:
            async for chunk in chunks:
                if chunk.usage is not None:
                    await self._spend(chunk.usage)
                elif chunk.kind == "reset":
                    pieces.clear()
                elif chunk.kind == "text":
                    pieces.append(chunk.text)
        return "".join(pieces)

    async def _check_budget(self) -> None:
        """Raises ProviderError when the day's budget is used up."""
        if self.brain.ledger is not None:
            await self.brain.ledger.check(self.turn)

    async def _spend(self, usage: Usage) -> None:
        """Counts what a model call cost, and has it written down."""
        self.usage += usage
        provider, ledger = self.thalamus.provider, self.brain.ledger
        if ledger is None or usage == Usage(requests=usage.requests):
            return  # The offline model spends nothing.
        cost_usd = await price(provider.name, provider.model, usage, local=provider.local)
        at = self.brain.prefrontal.now()
        await ledger.note(self.turn, ModelCall(at, provider.name, provider.model, usage, cost_usd))

    def _retried(self, failure: ProviderError, pause_seconds: float) -> None:
        self._note("retry", error=str(failure), pause_seconds=pause_seconds)

    async def _ask_model(self, fitted: Fitted) -> _Round:
        """One call of the model, passed on as it streams."""
        spent = Usage()
        speech = self.brain.broca.begin()
        collector = self.brain.wernicke.begin()
        stop = ""
        reasoning: JsonObject | None = None
        self.speaking = False
        await self._check_budget()
        self._trace("thalamus.stream_reply")
        chunks = self.thalamus.stream_reply(fitted.prompt, self._retried)
        async with aclosing(chunks):
            self._trace("broca.speak")
            async for chunk in chunks:
                if chunk.usage is not None:
                    spent += chunk.usage
                    await self._spend(chunk.usage)
                elif chunk.kind == "stop":
                    stop = chunk.text
                elif chunk.kind in {"reasoning", "reset"}:
                    reasoning = chunk.reasoning
                collector.add(chunk)
                for segment in speech.speak(chunk):
                    self._emit(segment)
        for segment in speech.finish():
            self._emit(segment)
        self._trace("wernicke.parse_calls")
        taken = {call.id for call in self.calls}
        calls = self.brain.wernicke.parse_calls(collector, self.brain.cerebellum.tools(self.turn.person.rights), taken)
        if spent.requests == 1:
            self.brain.compaction.billed(fitted, spent)
        tokens = {"estimated": fitted.estimated, "in": spent.input_tokens, "out": spent.output_tokens}
        self._note("model", stop=stop, chars=len(speech.text), calls=len(calls), tokens=tokens)
        return _Round(speech.text, calls, stop == "length", reasoning)

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
            self._note_outside(earlier.call, result)
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
            self.brain.cerebellum.use(self.turn.person.rights, self.turn.conversation_id, call.name)
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
        self.ended.clear()
        for call, result in zip(calls, results, strict=True):
            self._note_outside(call, result)
        return results

    def _note_outside(self, call: ToolCall, result: ToolResult) -> None:
        """Remembers a result that may hold orders of others: from here on the gate is stricter."""
        spec = self.brain.cerebellum.spec(call.name)
        if spec is not None and spec.outside and call.fault is None and result.outcome in {"success", "failed"}:
            self.outside.append(call)

    def _classify(self, call: ToolCall, spec: ToolSpec | None) -> Verdict:
        if spec is None:
            return Verdict("safe")
        self._trace("amygdala.classify")
        verdict = self.brain.amygdala.classify(call, spec, self.turn, self.outside)
        self._note("verdict", tool=call.name, decision=verdict.decision, reason=verdict.reason)
        return verdict

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
            try:
                preview = await self._preview(call, spec)
            except ToolFailure as failure:
                return await self._refuse(number, call, str(failure), "failed")
            denial = await self._ask_owner(call, spec, verdict, preview)
            if denial is not None:
                return await self._refuse(number, call, denial, "denied")
        return await self._run(number, call, spec)

    async def _preview(self, call: ToolCall, spec: ToolSpec) -> str:
        """What the tool says that the call would do. Raises ToolFailure when it can do nothing: nobody is asked."""
        if not spec.previews or not self.turn.may_ask:
            return ""
        context = replace(call_context(self.turn, self.brain.prefrontal.now(), call.id), preview=True)
        return await self.brain.cerebellum.execute_tool(context, call)

    async def _ask_owner(self, call: ToolCall, spec: ToolSpec, verdict: Verdict, preview: str = "") -> str | None:
        """None when the owner agrees, else what the model reads. No answer means no."""
        if not self.turn.may_ask:
            return None if call.name in self.turn.allows else sentences.cannot_ask(verdict.reason)
        who = one_line(self.turn.person.name) or self.turn.person.id
        arabic = verdict.arabic and sentences.is_arabic(self.turn.text)
        reason = verdict.arabic if arabic else verdict.reason
        answer = await self.port.ask(Question(shown(call, spec, preview), reason, who, fades=bool(preview)))
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
        self.ended.append((call, result))
        seconds = round(result.took_seconds, 3)
        self._note("tool", n=number, tool=call.name, outcome=result.outcome, attempts=result.attempts, seconds=seconds)
        self.port.emit(Segment("tool", n=number, name=call.name, state=result.outcome, detail=_detail(call)))
        return result

    def _close(self, said: _Round, *, cut_off: bool = False) -> None:
        """Keeps the final text; an answer that is empty or cut off says so itself, and so does one in whose place calls
        came that were `cut_off` again and again. Nothing of their round runs."""
        text = said.text
        if cut_off:
            self.fault = f"the arguments of {said.calls[-1].name} were cut off again and again"
            ending = sentences.cut_calls(self.turn.text)
            self._emit(Segment("text", f"\n\n{ending}" if text.strip() else ending))
            text = f"{text}\n\n{ending}" if text.strip() else ending
        elif not text.strip():
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

    def _ref(self, number: int, result: ToolResult) -> str:
        """Where the result of call `number` can be opened again; tasks are the owner's."""
        if self.turn.person.rights != "owner":
            return ""
        step = number - len(self.turn.earlier_calls)
        return f"task:{self.turn.id}{f'#detail{step}' if len(result.text) > TASK_PREVIEW_CHARS else ''}"

    def _note(self, event: str, **facts: object) -> None:
        self.brain.corpus.note(self.turn, event, **facts)

    def _trace(self, step: str) -> None:
        if self.brain.trace is not None:
            self.brain.trace(step)


def _answered(call: ToolCall, result: ToolResult) -> Message:
    """A result as the model reads it: what a tool brought is data, what the program says is not."""
    ran = result.outcome in {"success", "failed"} and call.fault is None
    outcome = "" if result.ok else result.outcome
    text = fence(result.text, f"tool {call.name}", outcome=outcome) if ran else result.text
    return Message("tool", text, call_id=call.id)


def _instructions(name: str, body: str) -> Message:
    """The instructions of a capability that was loaded while the turn ran: the program's word, not data."""
    text = clip(body, CAPABILITY_BODY_TOKENS_MAX, f"the rest: memory_get skills/{name}/SKILL.md")
    return Message("user", f"<notice>\nInstructions of {name}, loaded now:\n{escape(text)}\n</notice>")


def _detail(call: ToolCall) -> str:
    """The arguments on one line."""
    return flat(", ".join(f"{key}: {value}" for key, value in call.args.items()), DETAIL_CHARS)
