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
from agent.exchanges import REST, exchanges_of, newest
from agent.fence import escape, fence
from agent.foreign import blocks
from agent.hippocampus.preferences import digest
from agent.hippocampus.tending import without_proposals
from agent.limits import (
    CONVERSATION_MAPS_MAX,
    GAP_SECONDS_MIN,
    HISTORY_FILL_SHARE,
    LIGHT_FILE_TOKENS_MIN,
    LIGHT_PART_TOKENS_MAX,
    LIGHT_TOKENS_MAX,
    MEMORY_CHARS_MAX,
    PREFERENCES_CHARS_MAX,
    QUERY_CHARS_MAX,
    RECALLED_HITS_MAX,
)
from agent.lines import one_line
from agent.overview import Counts, Glance, Overview
from agent.places import inside
from agent.prompts import default_soul, operating_contract, scheduled_contract
from agent.ras import Candidate, Ras
from agent.redaction import REDACT
from agent.retrieval import Hit
from agent.sections import Section, joined, section_of, shortened
from agent.snapshots import Snapshots, Source
from agent.tokens import ModelContext, clip, estimate_tokens, lasting_tokens, message_tokens, tool_tokens
from agent.types import Message, Prompt, ToolFailure, ToolSpec, Turn, Viewer
from agent.workspace import Page, Pages

_log = logging.getLogger(__name__)
_HIT_SHARE = 0.5
"""A hit goes into the prompt when it is at least this relevant beside the best one."""
PREFERENCES = "brain/hippocampus/knowledge/preferences.md"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Recall(Counts, Protocol):
    """What is asked of the memory index for a prompt."""

    async def candidates(self, viewer: Viewer, text: str, limit: int) -> Sequence[Hit]:
        """Raises ToolFailure when the index cannot be read."""
        ...


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
        self._workspace = workspace
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
        self._learned = nothing, nothing, section_of("memory", "preferences", "bank/opinions.md", "", "")

    async def assemble_context(self, turn: Turn) -> Prompt:
        """The first request of a turn.

        System: soul, operating contract, for the owner also agents.md, user.md, memory.md, the learned preferences,
        the memory map and the last week's refusals and failures, then capabilities and what the channel can show; the
        same bytes in each turn of a conversation while nobody edits these files and nothing is loaded. Messages:
        history, then one user message of recalled hits as data, `<context>`, and the person's words. An allowed
        person's prompt holds nothing of the owner's. A scheduled run gets a light request instead.
        """
        owner = turn.person.rights == "owner"
        rights, conversation_id = turn.person.rights, turn.conversation_id
        self._cerebellum.refresh()
        if turn.origin == "scheduled":
            return await self._assemble_light(turn)
        self._cerebellum.trigger(rights, conversation_id, turn.text)
        tools = self._cerebellum.definitions(rights, conversation_id)
        tools_tokens = self._tool_tokens(tools)
        frozen = await self._freeze(conversation_id, owner=owner)
        sections = self._sections(turn, frozen.glance)
        hits = await self._recall(turn)
        total_tokens = self._total_tokens()
        exchanges = exchanges_of(turn.history, total_tokens // 8)

        # The system part is shared out as if the history were endless: what is cut depends on the files alone, so
        # its bytes stay the same from turn to turn.
        contract_tokens = lasting_tokens(operating_contract())
        left = frozen.total_tokens - contract_tokens - tools_tokens
        wants = {"identity": 0, "prefrontal": 0, "memory": 0, "skills": 0, "history": max(0, left)}
        for section in sections:
            if section.kind in wants:
                wants[section.kind] += section.tokens
        budget = self._ras.share_budget(left, wants)
        system, sources = joined(sections, budget)
        left = total_tokens - contract_tokens - tools_tokens - sum(source.tokens for source in sources)

        text = clip(escape(turn.text), max(left, total_tokens // 4), REST)
        foreign = blocks(turn.foreign, total_tokens // 8, REST)
        text_tokens = estimate_tokens(text) + sum(map(estimate_tokens, foreign))
        history_wants = sum(tokens for _, tokens in exchanges)
        flowing = {"memory": sum(hit.tokens for hit in hits), "history": history_wants}
        flowing = self._ras.share_budget(left - text_tokens, flowing)
        recalled = _fitting(hits, flowing["memory"])
        history, history_tokens = newest(exchanges, flowing["history"])
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

    async def _assemble_light(self, turn: Turn) -> Prompt:
        """The request of a scheduled run: the task, its files and the memory map, with the tools it may need; nothing
        of any chat. The task is never cut; the files have what is left of `LIGHT_TOKENS_MAX`."""
        tools = self._cerebellum.light(turn)
        glance = (await self._freeze(turn.conversation_id, owner=True)).glance
        lines = self._cerebellum.lines(turn.person.rights)
        parts = [
            (self._file("identity", "soul", "identity/soul.md", self._soul), LIGHT_PART_TOKENS_MAX),
            (
                section_of("fixed", "contract", "scheduled.md", scheduled_contract(), "how a run works"),
                LIGHT_TOKENS_MAX,
            ),
            (self._file("prefrontal", "owner_rules", "agents.md"), LIGHT_PART_TOKENS_MAX),
            (section_of("prefrontal", "memory_map", "memory map", glance.map, "what it covers"), LIGHT_PART_TOKENS_MAX),
            (section_of("skills", "capabilities", "capabilities", lines, "what can be loaded"), LIGHT_PART_TOKENS_MAX),
        ]
        system, sources = joined([shortened(part, most) for part, most in parts if part.text], {})
        text, context = escape(turn.text), self._context(turn)
        tokens = estimate_tokens(system) + tool_tokens(tools) + estimate_tokens(text) + estimate_tokens(context)
        files = self._given(turn.reads, LIGHT_TOKENS_MAX - tokens)
        last = Message("user", "\n".join([*files, context, "", text]))
        prompt = Prompt(system, (last,), tools)
        sources += [Source("turn", "request", message_tokens([last]), f"the task, {len(files)} files")]
        self._snapshots.write(self.now().astimezone(self._zone), turn, prompt, sources, {})
        return prompt

    def _given(self, paths: Sequence[str], tokens_max: int) -> list[str]:
        """The files of a job, as data; each has an equal part of what is left."""
        blocks: list[str] = []
        for n, path in enumerate(paths):
            share = max(LIGHT_FILE_TOKENS_MIN, tokens_max // (len(paths) - n))
            try:
                inside(self._workspace, path)
                text = self._redact(self._pages.read(path, "").text) or "(there is no such file, or nothing in it)"
            except ToolFailure as failure:
                text = str(failure)
            block = fence(clip(text, share, f"the rest: read_file {path}"), f"file:{path}")
            tokens_max -= estimate_tokens(block)
            blocks.append(block)
        return blocks

    async def refresh(self) -> None:
        """Counts anew what the memory holds, so that no turn waits for it: after the start, after an import."""
        await self._overview.refresh()

    def forget(self, conversation_id: str) -> None:
        """Deletes the debug snapshots of a conversation."""
        self._snapshots.forget(conversation_id)

    def close(self) -> None:
        """Waits until all debug snapshots are written."""
        self._snapshots.close()

    def _sections(self, turn: Turn, glance: Glance) -> list[Section]:
        """The parts of the system prompt in their order: what changes least comes first."""
        sections = [
            self._file("identity", "soul", "identity/soul.md", self._soul),
            section_of("fixed", "operating_contract", "agents.core.md", operating_contract(), "how the program works"),
        ]
        if turn.person.rights == "owner":
            sections += [
                self._file("prefrontal", "owner_rules", "agents.md"),
                self._file("identity", "owner_profile", "identity/user.md"),
                self._memory_page(),
                self._preferences(),
                section_of("prefrontal", "memory_map", "memory map", glance.map, "what the memory covers"),
            ]
        if glance.last_week:
            text = fence(glance.last_week, "brain/basalganglia")
            sections += [section_of("prefrontal", "last_week", "last week", text, "what was refused and what failed")]
        rights = turn.person.rights
        sections.append(
            section_of("skills", "capabilities", "capabilities", self._cerebellum.lines(rights), "what it can do")
        )
        sections.append(section_of("prefrontal", "channel", "channel", turn.style, "what the channel can show"))
        sections += [
            section_of("skills", "instructions", f"skills/{name}/SKILL.md", f"{name}:\n{body}", "loaded")
            for name, body in self._cerebellum.loaded_bodies(rights, turn.conversation_id)
        ]
        return [section for section in sections if section.text]

    def _file(self, kind: str, tag: str, path: str, default: str = "") -> Section:
        page = self._pages.read(path, default)
        return Section(kind, tag, path, page.text, page.tokens, "always there")

    def _memory_page(self) -> Section:
        """memory.md without what is only proposed, and within its limit."""
        page = self._pages.read("memory.md")
        if len(page.text) <= MEMORY_CHARS_MAX and "Proposed" not in page.text:
            return Section("memory", "memory", "memory.md", page.text, page.tokens, "always there")
        text = without_proposals(page.text).strip()
        if len(text) > MEMORY_CHARS_MAX:
            text = clip(text, MEMORY_CHARS_MAX // 4, "the rest: memory_get memory.md")
        return section_of("memory", "memory", "memory.md", text, "always there")

    def _preferences(self) -> Section:
        """What was learned of preferences; made anew when one of its two pages changed."""
        opinions, kept = self._pages.read("bank/opinions.md"), self._pages.read(PREFERENCES)
        if self._learned[:2] != (opinions, kept):
            text = digest(opinions.text, kept.text, PREFERENCES_CHARS_MAX)
            section = section_of(
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


def _fitting(hits: Sequence[_Hit], tokens_max: int) -> list[_Hit]:
    """The first hits that fit together."""
    fitting: list[_Hit] = []
    for hit in hits:
        if hit.tokens > tokens_max:
            break
        tokens_max -= hit.tokens
        fitting.append(hit)
    return fitting


def _ago(seconds: float) -> str:
    """A length of time in its largest unit, from hours up."""
    hours = int(seconds // 3600)
    count, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{count} {unit}{'' if count == 1 else 's'}"
