"""Forgetting: finds what a reference or a sentence means, shows it, and takes it out of files, database and index."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from agent import places
from agent.hippocampus.cutting import Cut, block_at, cut_out, cut_versions, section_named, statements
from agent.hippocampus.plans import Ambiguous, Forgotten, Item, Plan, line
from agent.hippocampus.traces import Traces
from agent.limits import FORGET_CHOICES_MAX, FORGET_SHOWN_CHARS, QUERY_CHARS_MAX
from agent.lines import flat, lines_of, one_line
from agent.retrieval import Hit, SearchAnswer
from agent.snapshots import PROMPTS, drop_prompts
from agent.types import MessageRecord, ToolFailure, Transcripts, Viewer

CURATED = ("memory.md", "bank/**/*.md", "brain/hippocampus/knowledge/*.md", "brain/hippocampus/episodes/*.md")
"""Where a sentence is looked for."""
EPISODES = "brain/hippocampus/episodes/"
_SAID = re.compile(r"conversation:(?P<id>.+)#(?P<n>[0-9]{1,12})")
_DRESS = re.compile(
    r"\[?[WBSO](?:\(c=[^)]{0,8}\))?\]?((?:\s+@[^\s:]+)*\s*:|\s)\s*|(?P<source>\s*\([^()]{0,200}\)\s*\Z)"
)
"""What stands around the words of a fact: its type and entities before, its source and date after."""
_PROTECTED = ("agents.core.md", "agents.md", "heartbeat.md", "identity", "procedures", "skills", "readlog", "logs")
"""What is no memory: rules, jobs, and what only grows."""
_ROLES = frozenset({"user", "assistant", "owner"})
_READ_AT_ONCE = 500
SENTENCE_WORDS_MIN = 3
"""Fewer words may stand in any message; then only a message of just these is meant."""
BESIDES_CHARS_MAX = 40
"""So much more a message may say and still be about nothing else."""


class ForgetIndex(Protocol):
    """What forgetting asks of the memory index."""

    def sameness_key(self, text: str) -> str: ...

    async def file_changed(self, path: Path) -> None: ...

    async def search(self, viewer: Viewer, query: str, *, sources: str | None, limit: int) -> SearchAnswer: ...


class NamedRef(Protocol):
    """A reference that was read; see docs/formats.md."""

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def n(self) -> int | None: ...
    @property
    def part(self) -> int | None: ...
    @property
    def path(self) -> str: ...
    @property
    def lines(self) -> tuple[int, int] | None: ...
    @property
    def heading(self) -> str | None: ...
    @property
    def detail(self) -> int | None: ...


class MessageRemover(Protocol):
    """Takes messages out of database, index and read logs."""

    async def saying(self, text: str) -> list[tuple[str, int]]:
        """Conversation and number of every message with just this text that is answered or observed."""
        ...

    async def remove(self, conversation_id: str, numbers: Sequence[int] | None) -> int:
        """How many went; None: all, and the conversation. Raises ToolFailure while one of them is in use."""
        ...


class Forget:
    """`read_ref` reads a reference (None: it is none). `zone` is the owner's; `now` gives aware UTC times."""

    def __init__(
        self,
        workspace: Path,
        index: ForgetIndex,
        transcripts: Transcripts,
        remover: MessageRemover,
        read_ref: Callable[[str], NamedRef | None],
        zone: ZoneInfo,
        now: Callable[[], datetime],
    ) -> None:
        self._workspace = workspace
        self._index = index
        self._transcripts = transcripts
        self._remover = remover
        self._read_ref = read_ref
        self._traces = Traces(workspace, zone)
        self._now = now

    async def plan(self, viewer: Viewer, what: str, *, current: str = "") -> Plan:
        """What `what` names: a reference, or a sentence. Changes nothing.

        A sentence that stands somewhere word for word means all those places; else the best match, if it is the only
        one. Raises ToolFailure that lists the matches when there are several, or says that there is nothing.
        `current` is the conversation in which it is asked: `conversation:current` means it.
        """
        what = what.strip()
        if not what:
            raise ToolFailure("Say what to forget: a reference, or the sentence itself.")
        if re.match(r"(?:conversation|task|file):", what) or (" " not in what and _is_path(what)):
            return await self._named(viewer, what, current)
        return await self._told(viewer, what)

    async def carry_out(self, plan: Plan) -> Forgotten:
        """Removes what a plan shows: files first, since what is said there is shown by the messages. Raises ToolFailure
        when something reads otherwise by now, or a message is in use."""
        things = (*plan.items, *plan.also)
        stamp = f"{self._now().astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        cuts = [item.cut for item in things if item.cut is not None]
        try:
            kept = await asyncio.to_thread(cut_out, self._workspace, cuts, stamp)
            await asyncio.to_thread(cut_versions, self._workspace, cuts, self._telling(cuts))
        except OSError as error:
            raise ToolFailure(f"{error.filename}: {error.strerror}. Nothing more was removed.") from error
        for path in dict.fromkeys(cut.path for cut in cuts):
            await self._index.file_changed(self._workspace / path)
        messages = 0
        for conversation_id in dict.fromkeys(item.conversation_id for item in plan.items if item.conversation_id):
            numbers = [item.n for item in plan.items if item.conversation_id == conversation_id]
            known = [number for number in numbers if number is not None]
            messages += await self._remover.remove(conversation_id, known if len(known) == len(numbers) else None)
            await asyncio.to_thread(drop_prompts, self._workspace / PROMPTS, conversation_id)
        return Forgotten(plan, messages, tuple(kept))

    def _telling(self, cuts: Sequence[Cut]) -> Callable[[str], bool]:
        """Whether a line of an earlier page says what one of these says."""
        keys = {
            key
            for cut in cuts
            for one in islice(statements(cut.text), 1)
            if len((key := self._index.sameness_key(_bare(one.text))).split()) >= SENTENCE_WORDS_MIN
        }
        return lambda text: bool(keys) and any(key in self._index.sameness_key(text) for key in keys)

    # References

    async def _named(self, viewer: Viewer, what: str, current: str) -> Plan:
        ref = self._read_ref(what)
        if ref is None:
            raise ToolFailure(f"{what[:80]!r} is no reference. Examples: conversation:<id>#3, file:memory.md#L4.")
        if ref.kind == "conversation":
            return await self._conversation(viewer, current if ref.id == "current" else ref.id, ref)
        if ref.kind == "task":
            return self._task(ref)
        return await asyncio.to_thread(self._file, ref)

    async def _conversation(self, viewer: Viewer, id_: str, ref: NamedRef) -> Plan:
        found = [record for record in await self._transcripts.conversation(viewer, id_) if record.id == id_]
        if not found:
            raise ToolFailure(f"There is no conversation {id_[:80]!r}. conversation_list shows which there are.")
        if ref.part is not None:
            raise ToolFailure(f"A tool call goes with its message: name conversation:{id_}#{ref.n}.")
        record = found[0]
        if ref.n is None:
            about = f"{record.channel}:{one_line(record.chat)} {one_line(record.title)}".strip()
            text = f"{about}, {record.message_count:,} messages"
            item = Item(f"conversation:{id_}#", "conversation", text, conversation_id=id_)
            return Plan((item,), await self._repeated(id_, record.message_count, None))
        messages = await self._transcripts.messages(id_, ref.n, ref.n)
        if not messages:
            raise ToolFailure(f"conversation:{id_} has no message {ref.n} (any more).")
        return await self._with_traces([_message_item(id_, messages[0])])

    def _task(self, ref: NamedRef) -> Plan:
        if ref.detail is not None:
            raise ToolFailure(f"A step goes with its task: name task:{ref.id}.")
        items = [self._whole(path, "task") for path in self._traces.tasks([ref.id])]
        if not items:
            raise ToolFailure(f"There is no task {ref.id[:80]!r}.")
        return Plan(tuple(items))

    def _file(self, ref: NamedRef) -> Plan:
        place = places.inside(self._workspace, ref.path)
        path = places.shown(self._workspace, place)
        if path.split("/")[0] in _PROTECTED:
            raise ToolFailure(f"{path} is no memory; it is changed by hand or by its own tools.")
        if not place.is_file():
            raise ToolFailure(f"There is no file {path[:200]} in the workspace.")
        if ref.lines is None and ref.heading is None:
            return Plan((self._whole(path, "file"),))
        text = _text(place)
        if ref.heading is not None:
            key = self._index.sameness_key(ref.heading)
            same = [one.text for one in statements(text) if one.level and self._index.sameness_key(one.text) == key]
            cut = section_named(path, text, ref.heading, same)
        else:
            first, last = ref.lines or (1, 1)
            cuts = [block_at(path, text, number) for number in range(first, min(last, first + _READ_AT_ONCE) + 1)]
            longest = max(cuts, key=lambda one: one.first + len(one.lines))
            lines = lines_of(text)[first - 1 : longest.first + len(longest.lines) - 1]
            cut = cuts[0] if first == last else Cut(path, first, tuple(lines))
        return Plan((_cut_item(cut),))

    @staticmethod
    def _whole(path: str, kind: str) -> Item:
        return Item(f"file:{path}", kind, path.rpartition("/")[2], Cut(path))

    # Sentences

    async def _told(self, viewer: Viewer, what: str) -> Plan:
        key = self._index.sameness_key(what)
        if not key:
            raise ToolFailure("That holds no word. Say what to forget: a reference, or the sentence itself.")
        exact = await asyncio.to_thread(self._stated, key)
        query = what[:QUERY_CHARS_MAX]
        # Asked for apart: a search shows one of several that say the same, and that may be the line of a file.
        messages = await self._index.search(viewer, query, sources="conversation", limit=FORGET_CHOICES_MAX * 2)
        said = [found for hit in messages.hits if (found := await self._said(hit)) is not None]
        mentions: list[Item] = []
        for item, whole in {text: (item, text) for item, text in said}.values():
            how = _says(self._index.sameness_key(whole), key)
            if how == "only":
                exact += await self._saying(whole)
            elif how == "among":
                mentions.append(item)
        if exact:
            plan = await self._with_traces(list({item.ref: item for item in exact}.values()))
            return replace(plan, mentions=tuple(mentions))
        answer = await self._index.search(viewer, query, sources=None, limit=FORGET_CHOICES_MAX * 2)
        shown = {hit.ref for hit in answer.hits}
        near = [item for item, _ in said if item.ref in shown]
        near += await asyncio.to_thread(self._near, answer.hits, key)
        order = {hit.ref: at for at, hit in enumerate(answer.hits)}
        near.sort(key=lambda item: order.get(item.ref, len(order)))
        choices = list({item.ref: item for item in near}.values())[:FORGET_CHOICES_MAX]
        if not choices:
            raise ToolFailure("Nothing that is remembered matches. Nothing was removed.")
        if len(choices) > 1:
            listed = "\n".join(line(item) for item in choices)
            raise Ambiguous(f"Several things may be meant; nothing was removed. Name one by its reference:\n{listed}")
        return await self._with_traces(choices)

    def _stated(self, key: str) -> list[Item]:
        """The bullets and sections of curated files that say just this."""
        items: list[Item] = []
        for pattern in CURATED:
            for place in sorted(self._workspace.glob(pattern)):
                path = place.relative_to(self._workspace).as_posix()
                text = _text(place, lenient=True)
                for one in statements(text):
                    if one.level and path.startswith(EPISODES):
                        continue
                    if key in {self._index.sameness_key(form) for form in _forms(one.text)}:
                        items.append(_cut_item(block_at(path, text, one.line)))
        return items

    async def _saying(self, text: str) -> list[Item]:
        items: list[Item] = []
        for conversation_id, number in await self._remover.saying(text):
            messages = await self._transcripts.messages(conversation_id, number, number)
            items += [_message_item(conversation_id, message) for message in messages]
        return items

    async def _said(self, hit: Hit) -> tuple[Item, str] | None:
        """A message that was found, and all of its text; None for what is no message, or still waits."""
        named = _SAID.fullmatch(hit.ref)
        if named is None or hit.role not in _ROLES:
            return None
        number = int(named["n"])
        messages = await self._transcripts.messages(named["id"], number, number)
        if not messages or messages[0].state in {"waiting", "running"}:
            return None
        return _message_item(named["id"], messages[0]), messages[0].text

    def _near(self, hits: Iterable[Hit], key: str) -> list[Item]:
        """For each hit in a curated file the statement in it that shares most words; others as they are."""
        wanted = set(key.split())
        items: list[Item] = []
        for hit in hits:
            ref = self._read_ref(hit.ref)
            if ref is None or ref.kind != "file" or hit.source not in {"knowledge", "doc", "episode", "consolidated"}:
                continue
            if ref.path.split("/")[0] in _PROTECTED or ref.lines is None:
                continue
            text = _text(self._workspace / ref.path, lenient=True)
            inside = [one for one in statements(text) if ref.lines[0] <= one.line <= ref.lines[1] and not one.level]
            scored = [(len(wanted & set(self._index.sameness_key(one.text).split())), one) for one in inside]
            best = max(scored, key=lambda pair: pair[0], default=None)
            if best is not None and best[0]:
                items.append(_cut_item(block_at(ref.path, text, best[1].line)))
        return items

    # What repeats it

    async def _with_traces(self, items: Sequence[Item]) -> Plan:
        also: list[Item] = []
        for item in items:
            if item.conversation_id and item.n is not None:
                also += await self._repeated(item.conversation_id, item.n, item.n)
        kept = {item.ref: item for item in also}
        own = {item.ref for item in items}
        return Plan(tuple(items), tuple(item for ref, item in kept.items() if ref not in own))

    async def _repeated(self, conversation_id: str, last: int, only: int | None) -> tuple[Item, ...]:
        """Entries of the day, outcomes and tasks of the turns to which these messages belong."""
        items: dict[str, Item] = {}
        first = 1 if only is None else only
        while first <= last:
            end = min(last, first + _READ_AT_ONCE - 1)
            messages = await self._transcripts.messages(conversation_id, first, end)
            for cut in await asyncio.to_thread(self._traces.of, messages):
                items[cut.ref] = _cut_item(cut)
            first = end + 1
        return tuple(items.values())


def _says(told: str, key: str) -> Literal["only", "among", "not"]:
    """Whether a message, in the form in which sentences are compared, says a sentence: with hardly a word besides
    ("remember that ..."), or among other things."""
    if told == key:
        return "only"
    if len(key.split()) < SENTENCE_WORDS_MIN or f" {key} " not in f" {told} ":
        return "not"
    return "only" if len(told) <= len(key) + BESIDES_CHARS_MAX else "among"


def _is_path(what: str) -> bool:
    return what.endswith(".md") or ".md#" in what


def _forms(text: str) -> set[str]:
    """A statement as it stands, and without what stands around its words."""
    return {text, _DRESS.sub("", text), re.sub(r"\A\[?[WBSO]\]?[^:]{0,200}:\s*", "", text)}


def _bare(text: str) -> str:
    """A statement as far as all its forms have it."""
    return min(_forms(text), key=len)


def _text(place: Path, *, lenient: bool = False) -> str:
    """The text of a file. Raises ToolFailure when it cannot be read; `lenient`: then it is empty."""
    try:
        return place.read_bytes().decode("utf-8", "replace" if lenient else "strict")
    except (OSError, UnicodeDecodeError):
        if lenient:
            return ""
        raise ToolFailure(f"{place.name} cannot be read as text.") from None


def _cut_item(cut: Cut) -> Item:
    kind = "file" if not cut.lines else "section" if len(cut.lines) > 1 else "line"
    return Item(cut.ref, kind, flat(cut.text, FORGET_SHOWN_CHARS) or cut.path.rpartition("/")[2], cut)


def _message_item(conversation_id: str, message: MessageRecord) -> Item:
    who = one_line(message.sender) or message.role
    text = f"{message.at:%Y-%m-%d} {who}: {flat(message.text, FORGET_SHOWN_CHARS)}"
    return Item(
        f"conversation:{conversation_id}#{message.n}", "message", text, conversation_id=conversation_id, n=message.n
    )
