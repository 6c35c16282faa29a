"""Puts together what the model gets for one turn: the context assembler. Deterministic, within a token budget."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.cerebellum import Cerebellum
from agent.fence import escape, fence
from agent.foreign import blocks
from agent.hippocampus.preferences import digest
from agent.hippocampus.tending import without_proposals
from agent.limits import (
    CONVERSATION_MAPS_MAX,
    GAP_SECONDS_MIN,
    HISTORY_FILL_SHARE,
    MEMORY_CHARS_MAX,
    PREFERENCES_CHARS_MAX,
    QUERY_CHARS_MAX,
    RECALLED_HITS_MAX,
    STUB_AFTER_EXCHANGES,
    STUB_CHARS_MIN,
)
from agent.lines import one_line
from agent.overview import Counts, Glance, Overview
from agent.prompts import default_soul, operating_contract
from agent.ras import Candidate, Ras
from agent.redaction import REDACT
from agent.retrieval import Hit
from agent.snapshots import Snapshots, Source
from agent.tokens import ModelContext, clip, estimate_tokens, lasting_tokens, message_tokens, tool_tokens
from agent.types import Message, Prompt, ToolFailure, ToolSpec, Turn, Viewer
from agent.workspace import Page, Pages

_log = logging.getLogger(__name__)
_HIT_SHARE = 0.5
"""A hit goes into the prompt when it is at least this relevant beside the best one."""
_REST = "the rest: conversation_read current"
PREFERENCES = "brain/hippocampus/knowledge/preferences.md"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Recall(Counts, Protocol):
    """What is asked of the memory index for a prompt."""

    async def candidates(self, viewer: Viewer, text: str, limit: int) -> Sequence[Hit]:
        """Raises ToolFailure when the index cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the system prompt: its tag, its text and whose budget it uses."""

    kind: str
    tag: str
    name: str
    text: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class _Hit:
    """A recalled hit as it goes into the prompt."""

    ref: str
    block: str
    tokens: int
    score: float


@dataclass(frozen=True, slots=True)
class _Frozen:
    """What stays the same for a conversation from its first turn on."""

    glance: Glance
    total_tokens: int


class Prefrontal:
    """Context assembler.

    `context` says how much the model takes; a conversation keeps for its system part the measure it began with.
    `digest` tells what went wrong in the days before one. `redact` masks secrets in what is recalled, and in the debug
    snapshots. `close` waits for the last debug snapshot.
    """

    def __init__(
        self,
        workspace: Path,
        ras: Ras,
        cortex: Recall,
        cerebellum: Cerebellum,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        *,
        context: ModelContext | None = None,
        agent_name: str = "Hudhud",
        digest: Callable[[date], str] = lambda today: "",
        redact: Callable[[str], str] = REDACT,
    ) -> None:
        self._pages = Pages(workspace)
        self._snapshots = Snapshots(workspace, redact)
        self._redact = redact
        self._ras = ras
        self._cortex = cortex
        self._cerebellum = cerebellum
        self._zone = zone
        self.now = now
        self._model_context = context or ModelContext()
        self._soul = default_soul(agent_name)
        self._overview = Overview(workspace, cortex, zone, now, digest)
        self._frozen: OrderedDict[str, _Frozen] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)
        nothing = Page("", 0)
        self._learned = nothing, nothing, _section("memory", "preferences", "bank/opinions.md", "", "")

    async def assemble_context(self, turn: Turn) -> Prompt:
        """The first request of a turn.

        System: soul, operating contract, for the owner also agents.md, user.md, memory.md, the learned preferences,
        the memory map and the last week's refusals and failures, then capabilities and what the channel can show; the
        same bytes in each turn of a conversation while nobody edits these files and nothing is loaded. Messages:
        history, then one user message of recalled hits as data, `<context>`, and the person's words. An allowed
        person's prompt holds nothing of the owner's. A scheduled run gets neither history nor hits.
        """
        owner = turn.person.rights == "owner"
        rights, conversation_id = turn.person.rights, turn.conversation_id
        self._cerebellum.refresh()
        if turn.origin == "person":
            self._cerebellum.trigger(rights, conversation_id, turn.text)
        tools = self._cerebellum.definitions(rights, conversation_id)
        tools_tokens = self._tool_tokens(tools)
        frozen = await self._freeze(conversation_id, owner=owner)
        sections = self._sections(turn, frozen.glance)
        hits = await self._recall(turn) if turn.origin == "person" else ()
        total_tokens = self._total_tokens()
        exchanges = _exchanges(turn.history, total_tokens // 8) if turn.origin == "person" else []

        # The system part is shared out as if the history were endless: what is cut depends on the files alone, so
        # its bytes stay the same from turn to turn.
        contract_tokens = lasting_tokens(operating_contract())
        left = frozen.total_tokens - contract_tokens - tools_tokens
        wants = {"identity": 0, "prefrontal": 0, "memory": 0, "skills": 0, "history": max(0, left)}
        for section in sections:
            if section.kind in wants:
                wants[section.kind] += section.tokens
        budget = self._ras.share_budget(left, wants)
        system, sources = _system(sections, budget)
        left = total_tokens - contract_tokens - tools_tokens - sum(source.tokens for source in sources)

        text = clip(escape(turn.text), max(left, total_tokens // 4), _REST)
        foreign = blocks(turn.foreign, total_tokens // 8, _REST)
        text_tokens = estimate_tokens(text) + sum(map(estimate_tokens, foreign))
        history_wants = sum(tokens for _, tokens in exchanges)
        flowing = {"memory": sum(hit.tokens for hit in hits), "history": history_wants}
        flowing = self._ras.share_budget(left - text_tokens, flowing)
        recalled = _fitting(hits, flowing["memory"])
        history, history_tokens = _newest(exchanges, flowing["history"])
        pictures = tuple(path for path in turn.files if path.lower().endswith(_PICTURES))
        parts = (*(hit.block for hit in recalled), *foreign, self._context(turn), "", text)
        prompt = Prompt(system, (*history, Message("user", "\n".join(parts), images=pictures)), tools)

        sources += [
            Source("fixed", "agents.core.md", contract_tokens, "how the program works"),
            Source("fixed", "tools", tools_tokens, f"{len(tools)} tools this person may call"),
            *(Source("memory", hit.ref, hit.tokens, f"recalled, score {hit.score:.2f}") for hit in recalled),
            Source("history", "history", history_tokens, f"{len(history)} of {len(turn.history)} messages"),
            Source("turn", "message", text_tokens, "what the person wrote, and words of others with it"),
        ]
        self._snapshots.write(self.now().astimezone(self._zone), turn, prompt, sources, {**budget, **flowing})
        return prompt

    async def refresh(self) -> None:
        """Counts anew what the memory holds, so that no turn waits for it: after the start, after an import."""
        await self._overview.refresh()

    def forget(self, conversation_id: str) -> None:
        """Deletes the debug snapshots of a conversation."""
        self._snapshots.forget(conversation_id)

    def close(self) -> None:
        """Waits until all debug snapshots are written."""
        self._snapshots.close()

    def _sections(self, turn: Turn, glance: Glance) -> list[_Section]:
        """The parts of the system prompt in their order: what changes least comes first."""
        sections = [
            self._file("identity", "soul", "identity/soul.md", self._soul),
            _section("fixed", "operating_contract", "agents.core.md", operating_contract(), "how the program works"),
        ]
        if turn.person.rights == "owner":
            sections += [
                self._file("prefrontal", "owner_rules", "agents.md"),
                self._file("identity", "owner_profile", "identity/user.md"),
                self._memory_page(),
                self._preferences(),
                _section("prefrontal", "memory_map", "memory map", glance.map, "what the memory covers"),
            ]
        if glance.last_week:
            text = fence(glance.last_week, "brain/basalganglia")
            sections += [_section("prefrontal", "last_week", "last week", text, "what was refused and what failed")]
        rights = turn.person.rights
        sections.append(
            _section("skills", "capabilities", "capabilities", self._cerebellum.lines(rights), "what it can do")
        )
        sections.append(_section("prefrontal", "channel", "channel", turn.style, "what the channel can show"))
        sections += [
            _section("skills", "instructions", f"skills/{name}/SKILL.md", f"{name}:\n{body}", "loaded")
            for name, body in self._cerebellum.loaded_bodies(rights, turn.conversation_id)
        ]
        return [section for section in sections if section.text]

    def _file(self, kind: str, tag: str, path: str, default: str = "") -> _Section:
        page = self._pages.read(path, default)
        return _Section(kind, tag, path, page.text, page.tokens, "always there")

    def _memory_page(self) -> _Section:
        """memory.md without what is only proposed, and within its limit."""
        page = self._pages.read("memory.md")
        if len(page.text) <= MEMORY_CHARS_MAX and "Proposed" not in page.text:
            return _Section("memory", "memory", "memory.md", page.text, page.tokens, "always there")
        text = without_proposals(page.text).strip()
        if len(text) > MEMORY_CHARS_MAX:
            text = clip(text, MEMORY_CHARS_MAX // 4, "the rest: memory_get memory.md")
        return _section("memory", "memory", "memory.md", text, "always there")

    def _preferences(self) -> _Section:
        """What was learned of preferences; made anew when one of its two pages changed."""
        opinions, kept = self._pages.read("bank/opinions.md"), self._pages.read(PREFERENCES)
        if self._learned[:2] != (opinions, kept):
            text = digest(opinions.text, kept.text, PREFERENCES_CHARS_MAX)
            section = _section(
                "memory", "preferences", "learned preferences", text, "bank/opinions.md and preferences.md"
            )
            self._learned = opinions, kept, section
        return self._learned[2]

    async def _freeze(self, conversation_id: str, *, owner: bool) -> _Frozen:
        """What this conversation began with. Only the owner is given a glance at the memory."""
        known = self._frozen.get(conversation_id)
        if known is None or (owner and not known.glance.map):
            glance = await self._overview.current() if owner else Glance("", "")
            known = self._frozen[conversation_id] = _Frozen(glance, self._total_tokens())
            if len(self._frozen) > CONVERSATION_MAPS_MAX:
                self._frozen.popitem(last=False)
        else:
            self._frozen.move_to_end(conversation_id)
        return known if owner else replace(known, glance=Glance("", ""))

    def _total_tokens(self) -> int:
        """Tokens, as they are estimated here, that the first request of a turn may have."""
        return self._model_context.share(HISTORY_FILL_SHARE)

    async def _recall(self, turn: Turn) -> tuple[_Hit, ...]:
        """What the memory offers for this turn, the most relevant first; nothing of this conversation itself."""
        seen = None if turn.person.rights == "owner" else frozenset({turn.session_key})
        try:
            asked = turn.text[:QUERY_CHARS_MAX]
            found = await self._cortex.candidates(Viewer(turn.person, seen), asked, RECALLED_HITS_MAX)
        except ToolFailure as failure:
            # The turn goes on without: the model can still search, and is told there what is wrong.
            _log.warning("nothing was recalled for turn %s: %s", turn.id, failure)
            return ()
        own = f"conversation:{turn.conversation_id}#"
        hits = {hit.ref: hit for hit in found if not hit.ref.startswith(own)}
        ranked = self._ras.rank(turn.text, [Candidate(hit.ref, hit.snippet, hit.score) for hit in hits.values()])
        floor = _HIT_SHARE * ranked[0].score if ranked else 0.0
        return tuple(self._hit(hits[item.candidate.key], item.score) for item in ranked if item.score >= floor)

    def _hit(self, hit: Hit, score: float) -> _Hit:
        at = f"{hit.at.astimezone(self._zone):%Y-%m-%d %H:%M}" if hit.at else ""
        text, title = self._redact(hit.snippet), self._redact(hit.title)
        block = fence(text, hit.ref, at=at, sender=hit.sender, role=hit.role, chat=hit.chat, title=title)
        return _Hit(hit.ref, block, estimate_tokens(block), score)

    def _context(self, turn: Turn) -> str:
        """The program's own word on when and who; the person's text follows it."""
        at = turn.started_at.astimezone(self._zone)
        name = one_line(turn.person.name) or turn.person.id
        who = "the owner" if turn.person.rights == "owner" else "an allowed person, not the owner"
        lines = ["<context>", f"now: {at:%A %Y-%m-%d %H:%M %z} ({self._zone.key})", f'from: {who}, named "{name}"']
        if turn.origin == "person" and turn.previous_at is not None:
            seconds = (turn.started_at - turn.previous_at).total_seconds()
            if seconds >= GAP_SECONDS_MIN:
                before = turn.previous_at.astimezone(self._zone)
                lines.append(f"last message here: {_ago(seconds)} ago, on {before:%A %Y-%m-%d %H:%M}")
        if turn.files:
            lines.append(f"files: {', '.join(one_line(path, 400) for path in turn.files)}")
        return "\n".join([*lines, "</context>"])

    def _tool_tokens(self, tools: tuple[ToolSpec, ...]) -> int:
        """Tokens of the tool list; counted again only when the list is another."""
        known, tokens = self._tools
        if known is not tools:
            tokens = tool_tokens(tools)
            self._tools = (tools, tokens)
        return tokens


def _section(kind: str, tag: str, name: str, text: str, why: str) -> _Section:
    return _Section(kind, tag, name, text, lasting_tokens(text), why)


def _system(sections: Sequence[_Section], budget: dict[str, int]) -> tuple[str, list[Source]]:
    """The system prompt, each section within what its kind has left; and what it is made of."""
    left = dict(budget)
    parts: list[str] = []
    sources: list[Source] = []
    for section in sections:
        text, tokens = section.text, section.tokens
        if section.kind in left:
            if tokens > left[section.kind]:
                text = clip(text, left[section.kind], f"the rest: memory_get {section.name}")
                tokens = estimate_tokens(text)
            left[section.kind] -= tokens
            sources.append(Source(section.kind, section.name, tokens, section.why))
        # A file that holds its own closing tag must not end its section early.
        inside = text.replace(f"</{section.tag}", f"<\\/{section.tag}")
        parts.append(f"<{section.tag}>\n{inside}\n</{section.tag}>")
    return "\n\n".join(parts), sources


def _fitting(hits: Sequence[_Hit], tokens_max: int) -> list[_Hit]:
    """The first hits that fit together."""
    fitting: list[_Hit] = []
    for hit in hits:
        if hit.tokens > tokens_max:
            break
        tokens_max -= hit.tokens
        fitting.append(hit)
    return fitting


def _exchanges(history: Sequence[Message], tokens_max: int) -> list[tuple[tuple[Message, ...], int]]:
    """The history as the model gets it, cut before each message of a person, with the tokens of each piece.

    A text longer than `tokens_max` is cut; long results of tools are stubs but for the last exchanges. What stands
    before the first piece is left out: no model takes an answer to nothing.
    """
    exchanges: list[tuple[tuple[Message, ...], int]] = []
    piece: list[Message] = []
    names = {call.id: call.name for message in history for call in message.calls}
    to_come = sum(message.role == "user" for message in history)
    for message in history:
        if message.role == "user":
            to_come -= 1
            if piece:
                exchanges.append((tuple(piece), message_tokens(piece)))
            piece = [_with_text(message, (str if message.is_data else escape)(clip(message.text, tokens_max, _REST)))]
        elif piece and message.role == "tool":
            old = to_come >= STUB_AFTER_EXCHANGES and len(message.text) >= STUB_CHARS_MIN
            name = names.get(message.call_id or "", "")
            piece.append(_stub(message, name) if old else _result(message, name, tokens_max))
        elif piece:
            piece.append(_with_text(message, clip(message.text, tokens_max, _REST)))
    if piece:
        exchanges.append((tuple(piece), message_tokens(piece)))
    return exchanges


def _with_text(message: Message, text: str) -> Message:
    return message if text is message.text else replace(message, text=text)


def _result(message: Message, name: str, tokens_max: int) -> Message:
    rest = f"the rest: memory_get {message.ref}" if message.ref else _REST
    return replace(message, text=fence(clip(message.text, tokens_max, rest), f"tool {name}"))


def _stub(message: Message, name: str) -> Message:
    """The program's word in the place of a long result."""
    fetch = f"memory_get {message.ref}" if message.ref else "conversation_read current"
    return replace(message, text=f"[{len(message.text):,} characters of {name}, not repeated here; {fetch} gives them]")


def _ago(seconds: float) -> str:
    """A length of time in its largest unit, from hours up."""
    hours = int(seconds // 3600)
    count, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _newest(exchanges: Sequence[tuple[tuple[Message, ...], int]], tokens_max: int) -> tuple[tuple[Message, ...], int]:
    """The last exchanges that fit together, in their order, and their tokens."""
    kept: list[tuple[Message, ...]] = []
    used = 0
    for messages, tokens in reversed(exchanges):
        if used + tokens > tokens_max:
            break
        used += tokens
        kept.append(messages)
    return tuple(message for messages in reversed(kept) for message in messages), used
