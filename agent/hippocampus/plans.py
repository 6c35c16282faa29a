"""What would be forgotten, and what was: the values that forgetting hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent.hippocampus.cutting import Cut
from agent.limits import FORGET_SHOWN_MAX
from agent.types import ToolFailure


class Ambiguous(ToolFailure):
    """A sentence means several things; `str()` lists them."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to remove: lines or a file (`cut`), a message or a conversation. `text` is what people are shown."""

    ref: str
    kind: str
    text: str
    cut: Cut | None = None
    conversation_id: str = ""
    n: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"ref": self.ref, "kind": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be removed, and `also` what repeats it: entries of the day, outcomes, tasks. `mentions` are messages
    that say it among much else: they stay, unless they are named."""

    items: tuple[Item, ...]
    also: tuple[Item, ...] = ()
    mentions: tuple[Item, ...] = ()

    def shown(self) -> str:
        """One thing a line, with its reference; the rest is counted."""
        lines = [line(item) for item in (*self.items, *self.also)[:FORGET_SHOWN_MAX]]
        more = len(self.items) + len(self.also) - len(lines)
        return "\n".join([*lines, *([f"… +{more}"] if more > 0 else [])])

    def as_json(self) -> dict[str, Any]:
        lists = {"remove": self.items, "also": self.also, "mentions": self.mentions}
        return {name: [item.as_json() for item in items] for name, items in lists.items()}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed. `kept`: the files as they were, relative to the workspace; `messages` are gone for good."""

    plan: Plan
    messages: int
    kept: tuple[str, ...]

    def text(self) -> str:
        """The result by references: it does not repeat what is gone."""
        refs = [item.ref for item in (*self.plan.items, *self.plan.also)]
        more = f" and {len(refs) - FORGET_SHOWN_MAX} more" if len(refs) > FORGET_SHOWN_MAX else ""
        lines = [f"Removed: {', '.join(refs[:FORGET_SHOWN_MAX])}{more}."]
        if self.messages:
            lines.append(f"{self.messages:,} message(s) are gone for good; they cannot be brought back.")
        if self.plan.mentions:
            refs = [item.ref for item in self.plan.mentions]
            lines.append(f"Said among other things, and still there unless it is named: {', '.join(refs)}.")
        if self.kept:
            lines.append("The files as they were, to copy back by hand: " + ", ".join(self.kept) + ".")
        return "\n".join(lines)


def line(item: Item) -> str:
    return f"- {item.ref}  {item.text}"
