"""What the retrieval tools print. One hit is two lines: `[ref] date · source · who · where`, and the excerpt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.limits import (
    READ_OUTPUT_BRIEF_CHARS,
    READ_OUTPUT_FULL_CHARS,
    READ_TEXT_BRIEF_CHARS,
    READ_TEXT_FULL_CHARS,
)
from agent.lines import body, flat, one_line
from agent.retrieval import Hit, SearchAnswer
from agent.types import ConversationRecord, JsonObject, MessageRecord, ToolCallRecord

WHAT = ("all", "messages", "tools")
DETAIL = ("brief", "full")
_LAST_TEXT_CHARS = 100
INDEXING = "The index is still being built: there may be more."


def search_answer(answer: SearchAnswer, zone: ZoneInfo) -> str:
    """Hits, best first, in blocks apart by an empty line; or why there are none."""
    blocks = [f"{_head(hit, zone)}\n{' '.join(hit.snippet.split())}" for hit in answer.hits]
    if not blocks:
        blocks.append(f"No hits. {answer.hint or ''}".strip())
    if answer.indexing:
        blocks.append(INDEXING)
    return "\n\n".join(blocks)


def _head(hit: Hit, zone: ZoneInfo) -> str:
    at = time(hit.at, zone) if hit.at else ""
    who = one_line(hit.sender or (hit.role if hit.source == "conversation" else ""))
    role = f" ({hit.role})" if hit.sender and hit.role else ""
    where = f"{hit.channel}:{one_line(hit.chat)}" if hit.channel else ""
    facts = [at, hit.source, f"{who}{role}" if who else "", one_line(hit.title), where]
    return f"[{hit.ref}] {' · '.join(fact for fact in facts if fact)}"


def conversation_list(records: Sequence[ConversationRecord], zone: ZoneInfo) -> str:
    """One conversation a line, with the beginning of its last message on the next."""
    if not records:
        return "No conversations."
    lines: list[str] = []
    for record in records:
        title = f" · {one_line(record.title)}" if record.title else ""
        lines.append(
            f"[{record.id}] {time(record.updated_at, zone)} · {record.channel}:{one_line(record.chat)}{title}"
            f" · {record.message_count} messages"
        )
        if record.last_text:
            lines.append(f"  {flat(record.last_text, _LAST_TEXT_CHARS)}")
    return "\n".join(lines)


def conversation(
    record: ConversationRecord, messages: Sequence[MessageRecord], zone: ZoneInfo, *, what: str, detail: str
) -> str:
    """Messages and tool calls in order; beside each cut stands the reference of the whole."""
    title = f" · {one_line(record.title)}" if record.title else ""
    head = (
        f"conversation:{record.id} · {record.channel}:{one_line(record.chat)}{title} · {record.message_count} messages"
    )
    if not messages:
        return f"{head}\n\nNo messages in this range."
    blocks = [head]
    for message in messages:
        blocks.extend(_message(record, message, zone, what, detail))
    first, last = messages[0].n, messages[-1].n
    more = [f"from 1 to {first - 1}"] if first > 1 else []
    more += [f"from {last + 1} to {record.message_count}"] if last < record.message_count else []
    if more:
        blocks.append(f"[Also there: {' and '.join(more)}.]")
    return "\n\n".join(blocks)


def _message(
    record: ConversationRecord, message: MessageRecord, zone: ZoneInfo, what: str, detail: str
) -> Iterator[str]:
    ref = f"conversation:{record.id}#{message.n}"
    if what != "tools":
        chars = READ_TEXT_FULL_CHARS if detail == "full" else READ_TEXT_BRIEF_CHARS
        who = one_line(message.sender) or message.role
        role = f" ({message.role})" if who != message.role else ""
        marks = f" [{', '.join(message.flags)}]" if message.flags else ""
        files = "".join(f"\n[{_attachment(item)}]" for item in message.attachments)
        text = body(_cut(message.text, chars, ref))
        yield f"#{message.n} {time(message.at, zone)} {who}{role}{marks}\n{text}{files}"
    if what != "messages":
        chars = READ_OUTPUT_FULL_CHARS if detail == "full" else READ_OUTPUT_BRIEF_CHARS
        for call in message.tool_calls:
            yield _call(call, chars, f"{ref}.{call.n}", f"#{message.n}.{call.n}")


def _call(call: ToolCallRecord, chars: int, ref: str, number: str) -> str:
    arguments = flat(json.dumps(dict(call.args), ensure_ascii=False, default=str), chars)
    return f"{number} {call.name} {arguments} -> {call.outcome}\n{body(_cut(call.output, chars, ref))}"


def _cut(text: str, chars: int, ref: str) -> str:
    if len(text) <= chars:
        return text
    return f"{text[:chars].rstrip()}… [{len(text) - chars:,} more characters: memory_get {ref}]"


def _attachment(item: Mapping[str, Any]) -> str:
    name = one_line(str(item.get("path") or item.get("name") or ""))
    return f"{item.get('kind', 'file')} {name}".rstrip()


def channel_states(states: JsonObject, zone: ZoneInfo) -> str:
    """One channel a line: connected or not, its state, when it last received and sent, what to do."""
    lines: list[str] = []
    for state in states.get("channels", ()):
        facts = [f"{'connected' if state.get('connected') else 'not connected'} ({state.get('state')})"]
        if not state.get("enabled", True):
            facts = ["switched off"]
        facts += [str(state["detail"])] if state.get("detail") else []
        for key, words in (("last_receive_at", "last receive"), ("last_send_at", "last send")):
            at = state.get(key)
            facts.append(f"{words} {time(datetime.fromisoformat(at), zone) if at else 'never'}")
        facts += [f"to do: {state['remedy']}"] if state.get("remedy") else []
        lines.append(f"{state.get('channel')}: {'; '.join(facts)}")
    return "\n".join(lines) or "No channel is switched on."


def session_hit(hit: Hit, zone: ZoneInfo) -> str:
    """A message that was found, with the key of its session."""
    at = f" {time(hit.at, zone)}" if hit.at else ""
    return f"[{hit.ref}]{at} · {hit.role} · sessionKey {one_line(hit.session_key)}\n{' '.join(hit.snippet.split())}"


def session_message(message: MessageRecord, ref: str, cut: bool, zone: ZoneInfo) -> str:
    """A message of a session with its calls."""
    who = one_line(message.sender) or message.role
    role = f" ({message.role})" if who != message.role else ""
    marks = f" [{', '.join(message.flags)}]" if message.flags else ""
    files = "".join(f"\n[{_attachment(item)}]" for item in message.attachments)
    calls = "".join(f"\n\n{_call(call, 1 << 30, '', f'[{ref}.{call.n}]')}" for call in message.tool_calls)
    more = f"\n[Cut; whole: memory_get {ref}]" if cut else ""
    return f"[{ref}] {time(message.at, zone)} {who}{role}{marks}\n{body(message.text)}{files}{calls}{more}"


def shortened(text: str, chars_max: int) -> str:
    """The beginning of a text, with `…` in the last place of a longer one."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def time(at: datetime, zone: ZoneInfo) -> str:
    """As people read it, in the owner's zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"
