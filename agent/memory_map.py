"""The memory map: what the memory covers, in a few lines. It says where to look, never what is there."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from agent.lines import one_line
from agent.retrieval import Coverage, SourceCoverage

HEADINGS_A_FILE_MAX = 8
_EXACT_BELOW = 20
_TENS_BELOW = 200
_NO_PROOF = (
    "This map is a statement of coverage, not of content, and no proof of absence: what is not on it may still be "
    "there. Search before you say that something is unknown."
)


def memory_map(coverage: Coverage, zone: ZoneInfo) -> str:
    """Counts (rounded from 20 on, so that the text changes seldom), days from and to, headings of knowledge files."""
    lines = [_NO_PROOF, ""]
    if coverage.conversations:
        lines.append(f"- conversations: {_about(coverage.conversations)}")
    lines += [_line(source, zone) for source in coverage.sources if source.records]
    if len(lines) == 2:
        lines.append("- nothing is indexed yet")
    return "\n".join([*lines, *_headings(coverage.headings)])


def _line(source: SourceCoverage, zone: ZoneInfo) -> str:
    first, last = source.first_at.astimezone(zone), source.last_at.astimezone(zone)
    return f"- {source.source}: {_about(source.records)} records, {first:%Y-%m-%d} to {last:%Y-%m-%d}"


def _headings(headings: Sequence[tuple[str, str]]) -> list[str]:
    files: dict[str, list[str]] = {}
    for path, heading in headings:
        files.setdefault(path, []).append(one_line(heading, 60))
    lines: list[str] = []
    for path, names in files.items():
        more = f" and {len(names) - HEADINGS_A_FILE_MAX} more" if len(names) > HEADINGS_A_FILE_MAX else ""
        lines.append(f"- {path}: {'; '.join(names[:HEADINGS_A_FILE_MAX])}{more}")
    return lines


def _about(count: int) -> str:
    """The count itself below 20; rounded to tens below 200, then to fifties."""
    if count < _EXACT_BELOW:
        return str(count)
    step = 10 if count < _TENS_BELOW else 50
    return f"about {round(count / step) * step:,}"
