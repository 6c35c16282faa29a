"""Reads the text of a `memory_search` result, and keeps the hits that are findings and not echoes of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.providers.offline_replies import OWN_MARKS, OWN_OPENINGS
from agent.providers.offline_words import alike_forms, forms, is_unspaced, keywords, same

FINDINGS_MAX = 5
ECHO_CHARS_MIN = 8
"""A text shorter than this may stand in another by chance."""
# A hit is two lines: `[ref] date · source · who (role) · title · channel:chat`, as far as known, and the excerpt.
_HIT = re.compile(
    r"^\[(?P<ref>(?:conversation|task|file):.+?)\](?: (?P<facts>[^\n]*))?(?:\n(?P<snippet>[^\n]*))?$", re.MULTILINE
)
_AT = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_ROLE = re.compile(r" ?\(?\b(user|assistant|owner|system|tool)\)?$")
_TOOL_CALL = re.compile(r"#\d+\.\d+$")
_CITES = re.compile(r"`(?:conversation|file|task):")
_OWN_PAGES = ("file:agents.core.md", "file:heartbeat.md", "file:run-history.md", "file:identity/soul.md")
_LIST_LINES = re.compile(r"^file:brain/hippocampus/knowledge/.+#L\d+-L\d+$")
_QUESTION_END = re.compile(r"[?？؟]\W*$")


@dataclass(frozen=True, slots=True)
class Hit:
    """One finding. `at` is a date with or without time, as the tool wrote it; empty fields were not given."""

    ref: str
    snippet: str
    at: str = ""
    sender: str = ""
    role: str = ""


def hits_of(text: str) -> list[Hit]:
    """The hits in a result's text, best first; none for a text without any."""
    return [_hit(found["ref"], found["facts"] or "", found["snippet"] or "") for found in _HIT.finditer(text)]


def _hit(ref: str, facts: str, snippet: str) -> Hit:
    parts = facts.split(" · ")
    at = parts.pop(0) if _AT.fullmatch(parts[0]) else ""
    # After the source stands who wrote it; a section of a page has no such person, but perhaps a title.
    who = parts[1] if len(parts) > 1 and ref.startswith("conversation:") else ""
    role = _ROLE.search(who)
    return Hit(ref, snippet.lstrip("-*•# ").rstrip(), at, who[: role.start()] if role else who, role[1] if role else "")


def findings(hits: Sequence[Hit], asked: Sequence[str], query: str) -> tuple[list[Hit], bool]:
    """The best hits that tell something, statements before questions; and whether they fit well.

    `asked`: what people wrote in this turn, which is in the index already. `query`: the first wording; a hit fits by
    the number of its words, or words of like meaning, and those that fit half as well as the best are left out.
    Left out too: what was asked, in this turn or as an earlier question of the same words; recorded tool calls and
    the program's own pages; the agent's own earlier answers of this kind, which quote what is found again anyway;
    messages that only stand near one that fits, unless they follow a question that fits; and repetitions.
    """
    groups = [alike_forms(word) for word in keywords(query, 50)]
    questions = [same(text) for text in asked]
    fit = {hit: _fit(hit, groups) for hit in dict.fromkeys(_narrowed(hit, groups) for hit in hits)}
    asked_for = {hit.ref for hit in fit if fit[hit] and _is_question(hit)}
    fit.update({hit: 1 for hit in fit if not fit[hit] and _ref_before(hit.ref) in asked_for})
    known = frozenset[str]().union(*groups, *(forms(word) for text in asked for word in keywords(text, 50)))
    told = [
        hit
        for hit in fit
        if not (hit.ref.startswith(_OWN_PAGES) or _TOOL_CALL.search(hit.ref) or _is_echo(hit, questions))
        and not (_is_question(hit) and _says_nothing_more(hit, known))
    ]
    best = max((fit[hit] for hit in told), default=0)
    kept = _without_repetitions([hit for hit in told if fit[hit] * 2 > best or _ref_before(hit.ref) in asked_for])
    return sorted(kept, key=_is_question)[:FINDINGS_MAX], best * 2 > len(groups)


def _narrowed(hit: Hit, groups: Sequence[frozenset[str]]) -> Hit:
    """Of a page's list, given as one line, the entries that have a word of the question; all when none has."""
    entries = hit.snippet.split(" - ") if _LIST_LINES.search(hit.ref) else []
    kept = [entry for entry in entries if _fit(replace(hit, snippet=entry), groups)]
    return replace(hit, snippet=" - ".join(kept)) if kept else hit


def _without_repetitions(hits: Sequence[Hit]) -> list[Hit]:
    people_said = [same(hit.snippet) for hit in hits if hit.role != "assistant"]
    kept: list[Hit] = []
    seen: list[str] = []
    for hit in hits:
        said = same(hit.snippet)
        if hit.role == "assistant" and any(len(other) >= ECHO_CHARS_MIN and other in said for other in people_said):
            continue
        if any(said == other or (_long(said, other) and (said in other or other in said)) for other in seen):
            continue
        seen.append(said)
        kept.append(hit)
    return kept


def _fit(hit: Hit, groups: Sequence[frozenset[str]]) -> int:
    """How many of the words stand in the excerpt; long ones and those without blanks may be part of a word."""
    said = same(hit.snippet)
    tokens = {form for word in said.split() for form in forms(word)}
    return sum(
        not tokens.isdisjoint(group) or any(word in said for word in group if len(word) >= 5 or is_unspaced(word))
        for group in groups
    )


def _is_question(hit: Hit) -> bool:
    return _QUESTION_END.search(hit.snippet) is not None


def _says_nothing_more(hit: Hit, known: frozenset[str]) -> bool:
    """Each of its words is one that is searched for."""
    return not any(known.isdisjoint(forms(word)) for word in keywords(hit.snippet, 50))


def _ref_before(ref: str) -> str:
    """The reference of the message before; empty where there is none."""
    head, _, number = ref.rpartition("#")
    return f"{head}#{int(number) - 1}" if head.startswith("conversation:") and number.isdecimal() else ""


def _is_echo(hit: Hit, questions: Sequence[str]) -> bool:
    said = same(hit.snippet)
    own = hit.role == "assistant" and (
        hit.snippet.lstrip("… ").startswith(OWN_OPENINGS)
        or any(mark in hit.snippet for mark in OWN_MARKS)
        or _CITES.search(hit.snippet) is not None
    )
    return not said or own or any(_repeats(hit, said, question) for question in questions)


def _repeats(hit: Hit, said: str, question: str) -> bool:
    """The hit is the question, a piece cut out of it, or a page of notes about the turn that asked it."""
    if said == question:
        return True
    if not _long(said, question):
        return False
    return said in question or (not hit.ref.startswith("conversation:") and question in said)


def _long(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= ECHO_CHARS_MIN
