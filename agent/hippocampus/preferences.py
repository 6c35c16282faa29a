"""What has been learned of somebody's preferences, in a few lines for the owner's prompts."""

from __future__ import annotations

import re
from datetime import date

from agent.hippocampus.facts import day_of_ref
from agent.hippocampus.opinions import Opinion, parse_opinions
from agent.hippocampus.tending import without_proposals
from agent.hippocampus.types import OWNER
from agent.lines import flat, lines_of, one_line

SURE_FROM = 0.60
LINE_CHARS = 160
_SOURCE = re.compile(r"\s+\([^()]*#L\d+[^()]*\)\s*$")
_BULLET = re.compile(r"[-*+]\s+(.*\S)")


def digest(opinions: str, preferences: str, chars_max: int) -> str:
    """The opinions of the page that hold, the owner's and the surest first, then the bullets of preferences.md that
    say something else; a line each, at most `chars_max` characters. Empty when nothing was learned."""
    kept = [opinion for opinion in parse_opinions(opinions).all if opinion.confidence >= SURE_FROM and _holds(opinion)]
    kept.sort(key=lambda opinion: (not _is_owners(opinion), -opinion.confidence, opinion.statement))
    lines = [_line(opinion) for opinion in kept]
    known = {_plain(opinion.statement) for opinion in kept}
    for line in lines_of(without_proposals(preferences)):
        found = _BULLET.match(line.strip())
        said = _SOURCE.sub("", found[1]) if found else ""
        if said and not any(one in _plain(said) for one in known):
            lines.append(f"- {flat(said, LINE_CHARS)}")
    fitting: list[str] = []
    for line in dict.fromkeys(lines):
        if len(line) + 1 <= chars_max:
            fitting.append(line)
            chars_max -= len(line) + 1
    return "\n".join(fitting)


def _line(opinion: Opinion) -> str:
    who = "" if _is_owners(opinion) else f"{', '.join(one_line(name.replace('-', ' ')) for name in opinion.entities)}: "
    return f"- {who}{flat(opinion.statement, LINE_CHARS)} ({opinion.confidence:.2f})"


def _is_owners(opinion: Opinion) -> bool:
    return not opinion.entities or OWNER in opinion.entities


def _holds(opinion: Opinion) -> bool:
    """True when the newest evidence speaks for it."""
    newest = max(map(_place, opinion.supporting), default=(date.min, 0))
    return not opinion.has_fields or newest >= max(map(_place, opinion.against), default=(date.min, 0))


def _place(ref: str) -> tuple[date, int]:
    number = ref.rpartition("#L")[2]
    return day_of_ref(ref) or date.min, int(number) if number.isdigit() else 0


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
