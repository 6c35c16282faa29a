"""Reads the text of a `memory_search` result, and keeps the hits that are findings and not echoes of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.providers.offline_replies import OWN_OPENINGS
from agent.providers.offline_words import folded, keywords, same

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
    return Hit(ref, snippet.strip(), at, who[: role.start()] if role else who, role[1] if role else "")


def findings(hits: Sequence[Hit], asked: Sequence[str]) -> list[Hit]:
    """The best hits that tell something. `asked`: what people wrote in this turn, which is in the index already.

    Left out: what was asked, in this turn or as an earlier question of the same words; recorded tool calls; the
    agent's own earlier answers of this kind, which quote what is found again anyway; and repetitions.
    """
    questions = [same(text) for text in asked]
    asked_words = {folded(word) for text in asked for word in keywords(text, 50)}
    told = [
        hit
        for hit in hits
        if not (_TOOL_CALL.search(hit.ref) or _is_echo(hit, questions) or _asks_the_same(hit, asked_words))
    ]
    people_said = [same(hit.snippet) for hit in told if hit.role != "assistant"]
    kept: list[Hit] = []
    seen: list[str] = []
    for hit in told:
        said = same(hit.snippet)
        if hit.role == "assistant" and any(len(other) >= ECHO_CHARS_MIN and other in said for other in people_said):
            continue
        if any(said == other or (_long(said, other) and (said in other or other in said)) for other in seen):
            continue
        seen.append(said)
        kept.append(hit)
    return kept[:FINDINGS_MAX]


def _asks_the_same(hit: Hit, asked_words: set[str]) -> bool:
    """An earlier question that holds no word beyond those asked for now."""
    is_question = _QUESTION_END.search(hit.snippet) is not None
    return is_question and {folded(word) for word in keywords(hit.snippet, 50)} <= asked_words


def _is_echo(hit: Hit, questions: Sequence[str]) -> bool:
    said = same(hit.snippet)
    own = hit.role == "assistant" and hit.snippet.lstrip("… ").startswith(OWN_OPENINGS)
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
