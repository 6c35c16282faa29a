"""The parts of a system prompt: each with its tag, what it costs, and whose budget it uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.snapshots import Source
from agent.tokens import clip, estimate_tokens, lasting_tokens


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the system prompt: its tag, its text and whose budget it uses."""

    kind: str
    tag: str
    name: str
    text: str
    tokens: int
    why: str


def section_of(kind: str, tag: str, name: str, text: str, why: str) -> Section:
    return Section(kind, tag, name, text, lasting_tokens(text), why)


def joined(sections: Sequence[Section], budget: dict[str, int]) -> tuple[str, list[Source]]:
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


def shortened(section: Section, tokens_max: int) -> Section:
    """The section, cut where it is longer."""
    if section.tokens <= tokens_max:
        return section
    text = clip(section.text, tokens_max, f"the rest: memory_get {section.name}")
    return replace(section, text=text, tokens=estimate_tokens(text))
