"""What a model is asked where there is one, each time in a fixed JSON schema, and how its answers are checked.

Nothing of a model's is written down without its evidence: a fact names the line it stands on and quotes it, a figure
or a name that the material does not hold makes a sentence fall.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast

from agent.hippocampus.believing import Judged
from agent.hippocampus.claims import Relation
from agent.hippocampus.facts import FACT_CHARS_MAX, MENTION, parse_bullet, write_bullet
from agent.hippocampus.pages import line_key
from agent.hippocampus.taking import said
from agent.hippocampus.times import spans
from agent.hippocampus.types import Fact, Judge, Words, said_by
from agent.types import JsonObject

MATERIAL_CHARS_MAX = 24_000
FACTS_MAX = 5
SUMMARY_CHARS_MAX = 600
NOTES_MAX = 12
QUOTE_CHARS_MIN = 8
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<![.!?؟:]\s)(?<!^)\b[A-Z][\w'’-]+")

_FACTS: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["facts"],
    "properties": {
        "facts": {
            "type": "array",
            "maxItems": FACTS_MAX,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["type", "text", "line", "quote"],
                "properties": {
                    "type": {"enum": ["W", "B", "O", "S"]},
                    "text": {"type": "string", "minLength": 8, "maxLength": 400},
                    "entities": {"type": "array", "maxItems": 6, "items": {"type": "string", "maxLength": 60}},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "line": {"type": "integer", "minimum": 1},
                    "quote": {"type": "string", "minLength": QUOTE_CHARS_MIN, "maxLength": 400},
                },
            },
        }
    },
}
_RELATIONS: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["judgements"],
    "properties": {
        "judgements": {
            "type": "array",
            "maxItems": 400,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["fact", "statement", "relation"],
                "properties": {
                    "fact": {"type": "integer", "minimum": 1},
                    "statement": {"type": "integer", "minimum": 1},
                    "relation": {"enum": ["supports", "contradicts", "other"]},
                },
            },
        }
    },
}
_SUMMARY: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary", "facts"],
    "properties": {
        "summary": {"type": "string", "minLength": 8, "maxLength": SUMMARY_CHARS_MAX},
        "facts": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}},
    },
}
_NOTES: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["notes"],
    "properties": {
        "notes": {
            "type": "array",
            "maxItems": NOTES_MAX,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["text", "line"],
                "properties": {
                    "text": {"type": "string", "minLength": 8, "maxLength": 300},
                    "line": {"type": "integer", "minimum": 1},
                },
            },
        }
    },
}
_ASK_FACTS = (
    "Take 2 to 5 lasting facts out of this day's log, fewer when there are fewer. Each stands alone: names and dates "
    "instead of `he` and `tomorrow`, in the language it was said in. Types: W about the world and people, B what the "
    "agent did, O what the owner or somebody prefers or thinks (with a confidence), S a summary. `line` is the number "
    "of the line it stands on, `quote` words copied from that line. No passing states, no secrets (passwords, codes), "
    "nothing that only a tool, a page or a quoted text claims."
)
_ASK_RELATIONS = (
    "Say how each fact bears on each statement: supports (says the same), contradicts (both cannot hold at the same "
    "time in the same respect, or it says that the statement holds no more), other. Leave out pairs that are other."
)
_ASK_SUMMARY = (
    "Sum up in at most three sentences what is known now of the person or thing named in the first line, from the "
    "facts alone; where two disagree, the later one holds. `facts`: the numbers of those you used."
)
_ASK_NOTES = (
    "Say in 3 to 12 short notes what happened in this week, what was decided and what is still open, from the lines "
    "alone. `line` is the number of the line that shows it."
)


async def propose(judge: Judge, words: Words, lines: Sequence[tuple[int, str]], day: date) -> list[str] | None:
    """The facts a model finds in the lines of a day, as bullets; None when it did not answer.

    What is not on the line it names is dropped. Only the owner's words can become an opinion; what others said keeps
    its origin.
    """
    people = {item.line: item for item in said(lines)}
    by_number = dict(lines)
    answer = await _asked(judge, _ASK_FACTS, _numbered(lines), _FACTS)
    if answer is None:
        return None
    bullets: list[str] = []
    for item in answer["facts"]:
        line = by_number.get(item["line"], "")
        if not _quotes(words, item["quote"], line) or not _stands_on(item["text"], line, day):
            continue
        letter, text = item["type"], MENTION.sub(lambda found: found[1], " ".join(item["text"].split()))
        names = tuple(re.sub(r"[^\w-]+", "-", name).strip("-") for name in item.get("entities", ()))
        entities = tuple(dict.fromkeys(name for name in names if name))
        speaker = people.get(item["line"])
        if speaker is None:
            letter = "B" if letter in {"W", "O"} else letter  # the agent's own words are no news of the world
        elif speaker.who:
            letter, text = "W", said_by(text, f"{speaker.who}, {speaker.channel}")
        confidence = min(0.9, float(item.get("confidence", 0.7))) if letter == "O" else None
        bullet = write_bullet(letter, text[:FACT_CHARS_MAX], entities, confidence)
        if not isinstance(parse_bullet(bullet), str):
            bullets.append(bullet)
    return bullets


async def relate(judge: Judge, facts: Mapping[str, Fact], statements: list[str]) -> Judged:
    """What a model says of each fact (by key) and each statement; pairs it does not name are left to the rules."""
    if not facts or not statements:
        return {}
    keys = list(facts)
    told = [f"fact {n}: {facts[key].text}" for n, key in enumerate(keys, 1)]
    told += [f"statement {n}: {statement}" for n, statement in enumerate(statements, 1)]
    answer = await _asked(judge, _ASK_RELATIONS, "\n".join(told), _RELATIONS)
    judged: dict[tuple[str, str], Relation] = {}
    for item in (answer or {"judgements": ()})["judgements"]:
        fact, statement = int(item["fact"]), int(item["statement"])
        if fact <= len(keys) and statement <= len(statements):
            judged[keys[fact - 1], line_key(statements[statement - 1])] = item["relation"]
    return judged


async def summarise(judge: Judge, name: str, facts: Sequence[str]) -> str:
    """A summary of an entity; empty when the model gave none that its facts bear out."""
    told = "\n".join([name, *(f"{n}. {fact}" for n, fact in enumerate(facts, 1))])
    answer = await _asked(judge, _ASK_SUMMARY, told, _SUMMARY)
    if answer is None or any(n > len(facts) for n in answer["facts"]):
        return ""
    summary = " ".join(answer["summary"].split())
    return summary if _borne_out(summary, told) and not summary.startswith("#") else ""


async def notes(judge: Judge, lines: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
    """What a model says of a week, each with the line that shows it; what that line does not bear out is dropped."""
    by_number = dict(lines)
    answer = await _asked(judge, _ASK_NOTES, _numbered(lines), _NOTES)
    found = (answer or {"notes": ()})["notes"]
    return [
        (" ".join(item["text"].split()), item["line"])
        for item in found
        if _stands_on(item["text"], by_number.get(item["line"], ""), None)
    ]


async def _asked(judge: Judge, prompt: str, material: str, schema: JsonObject) -> dict[str, Any] | None:
    import jsonschema

    answer = await judge.judge(prompt, material[:MATERIAL_CHARS_MAX], schema)
    try:
        jsonschema.validate(answer, cast("dict[str, Any]", schema))
    except jsonschema.ValidationError:
        return None
    return cast("dict[str, Any]", answer)


def _numbered(lines: Sequence[tuple[int, str]]) -> str:
    return "\n".join(f"{number}: {line}" for number, line in lines if line.strip())


def _quotes(words: Words, quote: str, line: str) -> bool:
    key = words.sameness_key(quote)
    return len(key) >= QUOTE_CHARS_MIN - 2 and key in words.sameness_key(line)


def _stands_on(text: str, line: str, day: date | None) -> bool:
    """True when the line has what the sentence says: its figures (or the days they stand for) and half its words."""
    if not line.strip():
        return False
    dates = "" if day is None else " ".join(f"{span.first} {span.last}" for span in spans(line, day, of_record=True))
    material = f"{line} {dates} {day or ''}"
    said_words = {word.casefold() for word in re.findall(r"[^\W\d_]{3,}", text)}
    there = {word.casefold()[:4] for word in re.findall(r"[^\W\d_]{3,}", line)}
    near = sum(word[:4] in there for word in said_words)
    return _borne_out_figures(text, material) and (not said_words or near * 2 >= len(said_words) or near >= 4)


def _borne_out_figures(text: str, material: str) -> bool:
    there = set(re.findall(r"\d+", material))
    return all(
        figure in there or figure.lstrip("0") in there
        for found in _FIGURE.findall(text)
        for figure in re.findall(r"\d+", found)
    )


def _borne_out(text: str, material: str) -> bool:
    """True when every figure and every name of the text stands in the material."""
    plain = material.casefold()
    return _borne_out_figures(text, material) and all(name.casefold() in plain for name in _NAME.findall(text))
