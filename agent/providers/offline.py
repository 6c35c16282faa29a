"""The default model: no key, no network, the same answer to the same prompt. It finds, keeps and lists.

It works on the prompt alone and keeps no state: which calls were made and what came of them stands in the messages.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.characters import whole_characters
from agent.fence import spoken, unfence
from agent.providers import offline_replies as replies
from agent.providers.base import ProviderSettings
from agent.providers.offline_hits import Hit, findings, hits_of
from agent.providers.offline_words import is_arabic
from agent.types import JsonObject, Message, Prompt, StreamChunk, ToolCall, Usage
from agent.when import read_reminder, read_when

if TYPE_CHECKING:
    from agent.providers.offline_asks import Ask

QUIET = "HEARTBEAT_OK"
ROUNDS_MAX = 6
SEARCH_LIMIT = 30
SEARCH_SOURCES = "conversation,knowledge,consolidated,doc,artifact"
"""Where findings are; task, log and episode pages mostly repeat that something was asked."""
_WORDS = re.compile(r"\s*\S+|\s+")
_PAUSE_EVERY_CHUNKS = 64
_CONTEXT_END = "</context>\n\n"
_INTERJECTION = "<context>\ncame while"
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[[ xX]\][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_OUTCOME = re.compile(r'<data [^\n]*\boutcome="(\w+)"')


@dataclass(frozen=True, slots=True)
class _Made:
    """A call of this turn and what came of it."""

    call: ToolCall
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class _Situation:
    """The running turn as the prompt shows it."""

    texts: tuple[str, ...]
    context: str
    made: tuple[_Made, ...]
    rounds: int
    tools: frozenset[str]

    def result(self, name: str, key: str = "", value: str | int = "") -> _Made | None:
        """The call of tool `name` whose argument `key` is `value`, if it was made."""
        return next(
            (made for made in self.made if made.call.name == name and (not key or made.call.args.get(key) == value)),
            None,
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """What one ask needs next: a call, or nothing more and its answer."""

    answer: str = ""
    tool: str = ""
    args: JsonObject | None = None


class OfflineProvider:
    """See the module's first lines. A Provider; the settings change nothing."""

    name = "offline"
    model = "offline"
    local = True
    writes = False

    def __init__(self, settings: ProviderSettings) -> None:
        del settings

    async def close(self) -> None:
        """There is nothing to close."""

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        """The calls that are still needed, else the answer a word a chunk; then usage (no tokens) and `stop`."""
        situation = _read(prompt)
        steps = _steps(situation)
        calls = [step for step in steps if step.args is not None]
        for index, step in enumerate(calls):
            call_id = f"call_{len(situation.made) + index + 1}"
            yield StreamChunk("call", index=index, call_id=call_id, name=step.tool, arguments_object=step.args)
        if not calls:
            answer = "\n\n".join(dict.fromkeys(step.answer for step in steps))
            for n, piece in enumerate(_WORDS.findall(answer), start=1):
                yield StreamChunk("text", text=piece)
                if n % _PAUSE_EVERY_CHUNKS == 0:
                    await asyncio.sleep(0)
        yield StreamChunk("usage", usage=Usage(requests=1))
        yield StreamChunk("stop", text="calls" if calls else "end")


def _read(prompt: Prompt) -> _Situation:
    messages = prompt.messages
    begin = _turn_begin(messages)
    turn = messages[begin:]
    results = {message.call_id: message for message in turn if message.role == "tool"}
    made = [_made(call, results.get(call.id)) for message in turn for call in message.calls]
    texts = [
        whole_characters(spoken(message.text)).strip()
        for message in turn
        if message.role == "user" and not message.text.startswith("<notice>")
    ]
    context = turn[0].text.partition(_CONTEXT_END)[0].rpartition("<context>\n")[2] if turn else ""
    return _Situation(
        texts=tuple(text for text in texts if text),
        context=context,
        made=tuple(made),
        rounds=sum(bool(message.calls) for message in turn),
        tools=frozenset(spec.name for spec in prompt.tools),
    )


def _turn_begin(messages: Sequence[Message]) -> int:
    """Where the running turn's own message stands.

    It is the first with a `<context>` block: the history has none. In a prompt without such blocks it is the last
    message of a person before the calls that follow the last finished answer.
    """
    for position, message in enumerate(messages):
        if message.role == "user" and _CONTEXT_END in message.text and not message.text.startswith(_INTERJECTION):
            return position
    begin, calling = len(messages), False
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            if not message.calls:
                break
            calling = True
        elif message.role == "user" and (calling or begin == len(messages)):
            begin, calling = position, False
    return begin


def _made(call: ToolCall, result: Message | None) -> _Made:
    if result is None:
        return _Made(call, False, "")
    outcome = _OUTCOME.match(result.text)
    ok = outcome[1] == "success" if outcome else result.text.startswith("<data ")
    return _Made(call, ok, unfence(result.text))


def _steps(situation: _Situation) -> list[_Step]:
    # Here, not above: its patterns take a tenth of a second to compile, and a start needs none of them.
    from agent.providers.offline_asks import SMALL_TALK, asks_of, without_schedule_line

    scheduled = without_schedule_line(situation.texts[0]) if situation.texts else None
    if scheduled is not None:
        items = _ITEM.findall(scheduled) if "procedure_step" in situation.tools else []
        if items:
            return _checklist(items, situation)
        asks = [ask for text in (scheduled, *situation.texts[1:]) for ask in asks_of(text) if _for_the_clock(ask)]
        return [_step(ask, situation) for ask in asks] or [_Step(QUIET)]
    asks: list[Ask] = []
    for text in situation.texts:
        more = asks_of(text)
        if any(ask.kind == "cancel" for ask in more):
            asks = []  # what was asked before is taken back
        asks += [ask for ask in more if ask not in asks]
    work = [ask for ask in asks if ask.kind not in SMALL_TALK and ask.kind != "statement"]
    return [_step(ask, situation) for ask in work or asks[-1:]] or [_Step(replies.small_talk("help", False))]


def _for_the_clock(ask: Ask) -> bool:
    """A scheduled run does what it is told; a mere question in it is for a model that can think about it."""
    return ask.kind in ("save", "status", "list", "reminder", "jobs") or (ask.kind == "search" and ask.explicit)


def _step(ask: Ask, situation: _Situation) -> _Step:
    match ask.kind:
        case "search":
            return _search(ask, situation)
        case "save":
            args = {"fact": ask.fact, "type": ask.fact_type}
            return _one_call(
                ask, situation, "memory_save", args, lambda text: replies.saved(ask.fact, text, ask.arabic)
            )
        case "forget":
            return _forget(ask, situation)
        case "correct":
            return _correct(ask, situation)
        case "status":
            return _one_call(ask, situation, "channel_status", {}, lambda text: replies.channels(text, ask.arabic))
        case "list":
            return _one_call(
                ask, situation, "conversation_list", {}, lambda text: replies.conversations(text, ask.arabic)
            )
        case "remind" | "plan":
            return _plan(ask, situation)
        case "reminder":
            return _Step(replies.reminder(ask.fact, ask.arabic))
        case "jobs":
            return _one_call(ask, situation, "schedule_list", {}, lambda text: replies.jobs(text, ask.arabic))
        case "time":
            return _Step(replies.now(situation.context, ask.arabic) or replies.statement(ask.arabic))
        case "statement":
            return _Step(replies.statement(ask.arabic))
        case _:
            return _Step(replies.small_talk(ask.kind, ask.arabic))


def _correct(ask: Ask, situation: _Situation) -> _Step:
    """Saves what holds now in the place of the fact that is nearest to it; where none is near, beside the others.

    Nothing is searched for first: after a text from outside a write would have to be asked for.
    """
    tries = [made for made in situation.made if made.call.name == "memory_save" and made.call.args["fact"] == ask.fact]
    if tries and (tries[-1].ok or "replaces" not in tries[-1].call.args):
        text = tries[-1].text
        answer = replies.saved(ask.fact, text, ask.arabic) if tries[-1].ok else ""
        return _Step(answer or replies.failed("memory_save", text, ask.arabic))
    args = {"fact": ask.fact, "type": ask.fact_type}
    if not tries:
        args["replaces"] = ask.fact
    return _call(situation, "memory_save", args) or _Step(_unable("memory_save", ask.arabic))


def _plan(ask: Ask, situation: _Situation) -> _Step:
    """A reminder or a job to write down; its times are counted from the turn's own time."""
    now = replies.at(situation.context)
    found = None if now is None else (read_reminder if ask.kind == "remind" else read_when)(ask.text, now)
    if found is None:
        return _Step(replies.statement(ask.arabic))
    instruction = found.rest
    if ask.kind == "remind":
        word = "ذكّرني" if ask.arabic else "Remind me"
        instruction = f"{word}: {found.rest}" if found.rest else f"{word}."
    args = {"when": found.said if found.zone else found.heading, "instruction": instruction}
    made = situation.result("schedule_create", "instruction", instruction)
    if made is None:
        return _call(situation, "schedule_create", args) or _Step(_unable("schedule_create", ask.arabic))
    text = replies.planned(made.text, ask.arabic)
    return _Step(text if made.ok else replies.failed("schedule_create", made.text, ask.arabic))


def _checklist(items: Sequence[str], situation: _Situation) -> list[_Step]:
    """The steps of a procedure, each ticked off when it is done; what this model cannot do is said and left open."""
    from agent.providers.offline_asks import asks_of

    steps: list[_Step] = []
    for number, item in enumerate(items, start=1):
        asks = [ask for ask in asks_of(item) if _for_the_clock(ask)]
        done = [_step(ask, situation) for ask in asks]
        if open_calls := [step for step in done if step.args is not None]:
            steps += open_calls
        elif done:
            answer = "\n".join(step.answer for step in done)
            if situation.result("procedure_step", "step", number) is None:
                tick = _call(situation, "procedure_step", {"step": number, "note": answer.partition("\n")[0][:80]})
                steps += [] if tick is None else [tick]
            steps.append(_Step(f"{number}. {item}\n{answer}"))
        else:
            steps.append(_Step(f"{number}. {item}: {replies.OFFLINE[is_arabic(item)]}"))
    return steps


def _one_call(ask: Ask, situation: _Situation, tool: str, args: dict[str, str], answer: Callable[[str], str]) -> _Step:
    made = situation.result(tool, "fact" if "fact" in args else "", ask.fact)
    if made is None:
        return _call(situation, tool, args) or _Step(_unable(tool, ask.arabic))
    return _Step(answer(made.text) if made.ok else replies.failed(tool, made.text, ask.arabic))


def _forget(ask: Ask, situation: _Situation) -> _Step:
    made = situation.result("memory_forget", "what", ask.fact)
    if made is None:
        return _call(situation, "memory_forget", {"what": ask.fact}) or _Step(_unable("memory_forget", ask.arabic))
    return _Step(replies.forgotten(made.text, ask.arabic) if made.ok else replies.not_forgotten(made.text, ask.arabic))


def _search(ask: Ask, situation: _Situation) -> _Step:
    """The first wording, the second unless what came fits well, then what was found, or that nothing was."""
    tool = "memory_search"
    searched: list[str] = []
    hits: list[Hit] = []
    found: list[Hit] = []
    for query in ask.queries:
        made = situation.result(tool, "query", query)
        if made is None:
            step = _call(situation, tool, {"query": query, "sources": SEARCH_SOURCES, "limit": SEARCH_LIMIT})
            if step is not None:
                return step
            break
        if not made.ok:
            return _Step(replies.failed(tool, made.text, ask.arabic))
        searched.append(query)
        hits += hits_of(made.text)
        found, fits_well = findings(hits, situation.texts, ask.queries[0])
        if fits_well:
            break
    if found:
        return _Step(replies.found(found, ask.arabic))
    return _Step(replies.nothing_found(searched, ask.arabic) if searched else _unable(tool, ask.arabic))


def _call(situation: _Situation, tool: str, args: JsonObject) -> _Step | None:
    """The call, or None when the tool is not there or enough rounds were made."""
    allowed = tool in situation.tools and situation.rounds < ROUNDS_MAX
    return _Step(tool=tool, args=args) if allowed else None


def _unable(tool: str, arabic: bool) -> str:
    return f"{replies.not_open(tool, arabic)}\n\n{replies.OFFLINE[arabic]}"
