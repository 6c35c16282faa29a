"""The memory as one object: keeps facts, finds them, reflects on them, sums up weeks. It needs no gateway, no model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.hippocampus import judging
from agent.hippocampus.believing import Believing, Judged, Known, statement_of
from agent.hippocampus.claims import Reader, Relation
from agent.hippocampus.consolidate import Week, knowledge_changes, parse_week, week_change, week_page, weeks_to_make
from agent.hippocampus.days import Days
from agent.hippocampus.entities import load_entities, plain, told
from agent.hippocampus.facts import Day, parse_day
from agent.hippocampus.lexicon import Lexicon
from agent.hippocampus.lines import BESIDE_MAX, Lines
from agent.hippocampus.opinions import parse_opinions
from agent.hippocampus.pages import (
    BEING_EDITED,
    Outcome,
    UnreadablePage,
    Written,
    apply,
    load_written,
    locked,
    read_text,
)
from agent.hippocampus.questions import Question, question, read_day_word
from agent.hippocampus.recall import Found, Recall
from agent.hippocampus.reflect import Material, Plan, is_current, plan
from agent.hippocampus.remembered import Item, Memory, Remembered
from agent.hippocampus.retain import Retained, append_facts, day_path, retain
from agent.hippocampus.taking import Taking, fresh_lines, said
from agent.hippocampus.types import OPINIONS, Fact, Fault, Judge, MemoryIndex
from agent.limits import QUERY_CHARS_MAX
from agent.types import ToolFailure, Viewer

LOG = logging.getLogger(__name__)
DAILY_DAYS = 7
"""The daily reflection looks for new facts in so many days: those of days on which nothing ran are made up."""
SUMMARIES_MAX = 12
"""So many entity pages a model sums up in one run."""
RELATED_MAX = 24
"""For so many entities a model judges how new facts bear on opinions in one run; for the others the rules do."""
READ_DAYS_MAX = 14
"""So many of the newest days a model reads in one run."""
NOTED_WEEKS_MAX = 4
"""Of many weeks that are made up at once, a model sums up the newest."""


@dataclass(slots=True)
class Reflected:
    """What a run did. `taken`: facts it took out of the days; `changed`: pages, relative to the workspace."""

    taken: int = 0
    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The JSON shape of `memory reflect` and `memory consolidate`."""
        return {
            "taken": self.taken,
            "changed": self.changed,
            "refused": self.refused,
            "faults": [
                {"file": fault.path, "line": fault.line, "text": fault.text, "reason": fault.reason}
                for fault in self.faults
            ],
        }

    def sentence(self) -> str:
        """What changed, for a log; empty when nothing did."""
        parts: list[str] = []
        if self.taken:
            parts.append(f"{self.taken} {'fact' if self.taken == 1 else 'facts'} taken from the days")
        if self.changed:
            shown = ", ".join(self.changed[:6]) + (
                f" and {len(self.changed) - 6} more" if len(self.changed) > 6 else ""
            )
            parts.append(f"{len(self.changed)} {'page' if len(self.changed) == 1 else 'pages'} changed: {shown}")
        return "; ".join([*parts, *self.refused])


class Reflection:
    """The memory of a workspace. `judge`: a model for the jobs; None: they go by rule. Methods raise ToolFailure.

    `zone` is the owner's: it says which day it is.
    """

    def __init__(
        self,
        workspace: Path,
        index: MemoryIndex,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        judge: Judge | None = None,
    ) -> None:
        self._workspace = workspace
        self._index = index
        self._zone = zone
        self._now = now
        self.judge = judge
        self._days = Days(workspace)
        # Recall goes on while a job runs, in a thread of its own.
        self._days_recalled = Days(workspace)
        self._thread = asyncio.Lock()
        self._busy = asyncio.Lock()
        self._told: set[str] = set()

    @cached_property
    def reader(self) -> Reader:
        """What the three below read sentences with; made, as they are, when something is first asked."""
        return Reader(Lexicon(self._index), self._index.sameness_key)

    @cached_property
    def _memory(self) -> Memory:
        return Memory(self._workspace, self._index, self.reader, self._days_recalled)

    @cached_property
    def _recall(self) -> Recall:
        return Recall(self.reader)

    @property
    def today(self) -> date:
        return self._now().astimezone(self._zone).date()

    def day_word(self, text: str) -> date:
        """A day as `since` takes it: 2026-11-27, 30d, or in words. Raises ToolFailure."""
        return read_day_word(text, self.today)

    async def retain(self, bullet: str) -> Retained:
        """Keeps one well-formed bullet in today's file."""
        kept = await asyncio.to_thread(retain, self._workspace, self._zone, self._index, bullet, self._now())
        await self._index.file_changed(self._workspace / kept.ref.rpartition("#L")[0])
        return kept

    async def recall(self, viewer: Viewer, text: str, args: dict[str, Any]) -> list[Found]:
        """What is remembered that answers a question; `args` are the tool's: k, since, until, around, kind, entity,
        max_tokens. Best first."""
        asked = question(text[:QUERY_CHARS_MAX], self.today, args)
        async with self._thread:
            found = await asyncio.to_thread(self._memory.current)
            others = await self._beside(viewer, asked, found) if asked.kind != "opinion" else []
            return await asyncio.to_thread(self._recall.hits, asked, found, others, self.today)

    async def _beside(self, viewer: Viewer, asked: Question, found: Remembered) -> list[Item]:
        """What the index finds in the days' entries and the weeks, line by line."""
        lines = Lines(self._workspace, self.reader, found)
        if not asked.text.strip() or not self._index.word_forms(asked.text):
            return await asyncio.to_thread(lines.of_days, asked.first, asked.last, self._days_recalled)
        if await asyncio.to_thread(self._recall.is_sure, asked, found, self.today):
            return []
        answer = await self._index.search(
            viewer,
            asked.text,
            sources="episode,consolidated",
            after=asked.first.isoformat() if asked.first and asked.strict else None,
            before=asked.last.isoformat() if asked.last else None,
            limit=BESIDE_MAX,
        )
        return await asyncio.to_thread(lines.of_hits, answer.hits, asked.text)

    async def consolidate(self, week: Week | None = None, since: date | None = None) -> Reflected:
        """Sums up one week, all from `since` on, or (neither given) those that were missed, each once.

        A week that has not ended, or of which nothing is known, gives nothing.
        """
        async with self._busy:
            try:
                return await self._consolidate(week, since)
            except OSError as error:
                raise ToolFailure(f"The memory could not be written: {error.strerror}.", transient=True) from error
            except UnreadablePage as error:
                raise ToolFailure(str(error)) from error

    async def consolidate_named(self, week: str | None, since: str | None) -> Reflected:
        """As `consolidate`, for `2026-W48` and for a day as `since` takes it. Raises ToolFailure for anything else."""
        chosen = parse_week(week) if week else None
        if week and chosen is None:
            raise ToolFailure(f"{week[:20]!r} is no week; write it as 2026-W48.")
        if chosen is not None and chosen.last >= self.today:
            raise ToolFailure(f"The week {chosen.name} has not ended yet; it can be summed up after {chosen.last}.")
        return await self.consolidate(chosen, self.day_word(since) if since else None)

    async def _consolidate(self, week: Week | None, since: date | None) -> Reflected:
        written = await asyncio.to_thread(load_written, self._workspace)
        days = await asyncio.to_thread(self._days.all)
        weeks = [
            one
            for one in weeks_to_make(days, written, self.today, week.first if week else since)
            if week is None or one == week
        ]
        done = Reflected()
        if not weeks:
            return done
        notes = await self._notes(weeks[-NOTED_WEEKS_MAX:], days)
        outcome = await asyncio.to_thread(self._sum_up, weeks, notes)
        for page in outcome.changed:
            await self._index.file_changed(self._workspace / page)
        done.changed, done.refused = outcome.changed, outcome.refused
        return done

    def _sum_up(self, weeks: Sequence[Week], notes: Mapping[Week, list[tuple[str, str]]]) -> Outcome:
        with locked(self._workspace):
            written = load_written(self._workspace)
            material = self._material(written, None)
            days = self._days.all()
            believing = Believing(self.reader, material.entities, material.known, written, {})
            changes = [
                week_change(
                    written, week, week_page(self._workspace, week, days, material.entities, notes.get(week, ()))
                )
                for week in weeks
            ]
            # An older week that is made again takes nothing back of what later ones have shown.
            made = [known for name in written.weeks if (known := parse_week(name)) is not None]
            until = max([*weeks, *made]).last
            changes += knowledge_changes(self._workspace, material, self.reader, believing, until)

            def finish(outcome: Outcome) -> None:
                written.weeks |= {week.name for week in weeks if (self._workspace / week.page).exists()}

            return apply(self._workspace, written, changes, self._now(), finish)

    async def _notes(self, weeks: Sequence[Week], days: Sequence[Day]) -> dict[Week, list[tuple[str, str]]]:
        """What the model says of the newest of these weeks, with where it stands."""
        found: dict[Week, list[tuple[str, str]]] = {}
        for week in weeks if self.judge is not None else ():
            lines = [
                (f"{day.path}#L{item.line}", f"{day.day} {item.text}")
                for day in days
                if week.first <= day.day <= week.last
                for item in said(enumerate(day.lines, 1))
            ]
            assert self.judge is not None
            told = await judging.notes(self.judge, [(n, text) for n, (_, text) in enumerate(lines, 1)])
            found[week] = [(text, lines[n - 1][0]) for text, n in told]
        return found

    async def weekly(self, now: datetime) -> str:
        """The weekly job: the week that has ended, and those that were missed; what changed, empty when nothing did."""
        del now  # the weeks that have ended are counted from the clock that was handed in
        return self._news(await self.consolidate())

    async def daily(self, now: datetime) -> str:
        """The daily job: what changed, empty when nothing did."""
        since = now.astimezone(self._zone).date() - timedelta(days=DAILY_DAYS)
        return self._news(await self.reflect(since))

    def _news(self, done: Reflected) -> str:
        """What a job did, for its line in the run history; what was refused before is not news."""
        refused = [reason for reason in done.refused if reason not in self._told]
        self._told = set(done.refused)
        for reason in refused:
            LOG.warning("%s", reason)
        return Reflected(done.taken, done.changed, refused).sentence()

    async def reflect(self, since: date | None = None) -> Reflected:
        """Takes new facts out of the days from `since` on (None: all) and brings the bank up to date."""
        async with self._busy:
            try:
                done = Reflected(taken=await self._take(since))
                judged, summaries = await self._ask(since)
                outcome, made = await asyncio.to_thread(self._apply, since, judged, summaries)
            except OSError as error:
                raise ToolFailure(f"The memory could not be written: {error.strerror}.", transient=True) from error
            except UnreadablePage as error:
                raise ToolFailure(str(error)) from error
            for page in outcome.changed:
                await self._index.file_changed(self._workspace / page)
            done.changed += outcome.changed
            done.refused += [*outcome.refused, *made.remarks]
            done.faults = [fault for fault in self._days.faults() if since is None or fault.path >= day_path(since)]
            return done

    def _material(self, written: Written, since: date | None) -> Material:
        facts = list(self._days.facts())
        known = Known()
        known.add(facts)
        fresh = [fact for fact in facts if since is None or fact.day >= since]
        return Material(facts, fresh, known, load_entities(self._workspace, self._index), written)

    def _apply(self, since: date | None, judged: Judged, summaries: Mapping[str, str]) -> tuple[Outcome, Plan]:
        with locked(self._workspace):
            material = self._material(load_written(self._workspace), since)
            material.judged, material.summaries = judged, summaries
            made = plan(self._workspace, material, self.reader, self._index)

            def finish(outcome: Outcome) -> None:
                if not any(reason.startswith(f"{OPINIONS}:") and BEING_EDITED in reason for reason in outcome.refused):
                    made.believing.note()

            return apply(self._workspace, material.written, made.changes, self._now(), finish), made

    # Facts out of the days

    async def _take(self, since: date | None) -> int:
        """Adds the facts of each day that were not taken yet; how many."""
        taken = 0
        days = await asyncio.to_thread(self._days.all)
        entities = await asyncio.to_thread(load_entities, self._workspace, self._index)
        taking = Taking(self.reader, entities)
        # A day that is not over yet is read by the model when it is.
        readable = {day.day for day in [day for day in days if day.day < self.today][-READ_DAYS_MAX:]}
        for day in days:
            if (since is not None and day.day < since) or day.day > self.today:
                continue
            lines = list(fresh_lines(day.lines))
            bullets = await asyncio.to_thread(taking.bullets, lines, day.day)
            asked = False
            if day.day in readable and self.judge is not None and any("- User" in line for _, line in lines):
                proposed = await judging.propose(self.judge, self._index, lines, day.day)
                asked = proposed is not None
                bullets += self._without_doubles(proposed or [], bullets)
            if bullets or asked:
                taken += await asyncio.to_thread(self._keep, day.day, day.lines, bullets)
                await self._index.file_changed(self._workspace / day.path)
        return taken

    def _without_doubles(self, bullets: Sequence[str], known: Sequence[str]) -> list[str]:
        """The bullets of a model that say nothing a rule took already."""
        keys = [self._index.sameness_key(bullet.partition(": ")[2]) for bullet in known]
        return [b for b in bullets if self._index.sameness_key(b.partition(": ")[2]) not in keys]

    def _keep(self, day: date, read: Sequence[str], bullets: Sequence[str]) -> int:
        """Writes the bullets of a day; marks it as looked through when nothing came in since it was read."""
        text = (self._workspace / day_path(day)).read_bytes().decode("utf-8", "replace")
        unchanged = parse_day("", day, text).lines == tuple(read)
        return append_facts(self._workspace, self._index, day, bullets, taken=unchanged)[1]

    # What a model says

    async def _ask(self, since: date | None) -> tuple[Judged, Mapping[str, str]]:
        """Asks the model, where there is one, how new facts bear on statements, and for summaries."""
        if self.judge is None:
            return {}, {}
        written = await asyncio.to_thread(load_written, self._workspace)
        material = await asyncio.to_thread(self._material, written, since)
        fresh = [
            fact
            for fact in material.fresh
            if fact.letter == "O" and not fact.origin and material.known.key_of[fact] not in material.written.facts
        ]
        opinions = parse_opinions(read_text(self._workspace / OPINIONS) or "").all
        slug_of = material.entities.slug_of
        judged: dict[tuple[str, str], Relation] = {}
        for slug in sorted({slug_of(name) for fact in fresh for name in fact.entities})[:RELATED_MAX]:
            mine = {material.known.key_of[f]: f for f in fresh if slug in map(slug_of, f.entities)}
            statements = [o.statement for o in opinions if slug in map(slug_of, o.entities)]
            statements += [statement_of(f, self.reader.read(plain(f.text))) for f in mine.values()]
            judged |= await judging.relate(self.judge, mine, list(dict.fromkeys(statements)))
        return judged, await self._summaries(material)

    async def _summaries(self, material: Material) -> dict[str, str]:
        found: dict[str, str] = {}
        asked = 0
        assert self.judge is not None
        pages: list[tuple[str, list[Fact]]] = sorted(material.by_slug().items(), key=lambda item: -len(item[1]))
        for slug, facts in pages:
            entity = material.entities.pages[slug]
            folded = told(facts, self._index)
            text = read_text(self._workspace / entity.path)
            if asked >= SUMMARIES_MAX or (text is not None and is_current(text, folded)):
                continue
            asked += 1
            lines = [f"{fact.sources[-1].day} {plain(fact.text)}" for fact in folded[-40:]]
            summary = await judging.summarise(self.judge, entity.name, lines)
            if summary:
                found[slug] = summary
        return found
