"""What the rooms of the memory hand to each other, and what they need from outside."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol

from agent.retrieval import SearchAnswer
from agent.types import JsonObject, Viewer

EPISODES = "brain/hippocampus/episodes"
CONSOLIDATED = "brain/hippocampus/consolidated"
KNOWLEDGE = "brain/hippocampus/knowledge"
ENTITIES = "bank/entities"
OPINIONS = "bank/opinions.md"
WORLD = "bank/world.md"
EXPERIENCE = "bank/experience.md"
MEMORY = "memory.md"
OWNER = "Owner"
"""The entity that stands for the owner where nobody said the name."""

Kind = Literal["world", "experience", "opinion", "observation"]
KINDS: tuple[Kind, ...] = ("world", "experience", "opinion", "observation")
Letter = Literal["W", "B", "O", "S"]
KIND_OF: dict[str, Kind] = {"W": "world", "B": "experience", "O": "opinion", "S": "observation"}

_ORIGIN = re.compile(r"\[said by ([^\[\]]+)\]\s*$")


def said_by(text: str, who: str) -> str:
    """A fact's text with its origin behind it."""
    name = who.replace("[", " ").replace("]", " ").strip()
    return f"{text} [said by {name or 'someone'}]"


@dataclass(frozen=True, slots=True)
class Fact:
    """One well-formed Retain bullet. `line` counts from 1; `day` is the day of its file, in the owner's zone.

    `entities` are the names as mentioned, without `@`; `confidence` is what an `O(c=...)` says, None without.
    """

    letter: str
    text: str
    entities: tuple[str, ...]
    confidence: float | None
    path: str
    line: int
    day: date

    @property
    def kind(self) -> Kind:
        return KIND_OF[self.letter]

    @property
    def origin(self) -> str:
        """Who said it, where that was not the owner: such a fact is never an opinion of the owner's."""
        found = _ORIGIN.search(self.text)
        return found[1] if found else ""

    @property
    def ref(self) -> str:
        """`path#L12`, relative to the workspace."""
        return f"{self.path}#L{self.line}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A bullet that is kept as text only: where it stands, what it says and what is wrong with it."""

    path: str
    line: int
    text: str
    reason: str


class Words(Protocol):
    """How the house folds words: the same for the index and for comparing sentences."""

    @property
    def common_words(self) -> Collection[str]:
        """Words too common to compare by, folded."""
        ...

    def sameness_key(self, text: str) -> str:
        """Equal for sentences that differ in case, spacing, punctuation or letter forms only."""
        ...

    def word_forms(self, text: str) -> Sequence[tuple[str, ...]]:
        """Each word of a text in order: its folded token first, then the forms that stand for it (stems)."""
        ...


class MemoryIndex(Words, Protocol):
    """What the memory asks of the index over the workspace."""

    async def search(
        self,
        viewer: Viewer,
        query: str,
        *,
        sources: str | None,
        after: str | None,
        before: str | None,
        limit: int,
    ) -> SearchAnswer: ...

    async def file_changed(self, path: Path) -> None: ...


class Judge(Protocol):
    """A model that answers a question in a fixed JSON schema: one call each."""

    async def judge(self, prompt: str, material: str, schema: JsonObject) -> Any | None:
        """The answer, held against `schema`; None when the model did not give one. Never raises for a model's fault.

        `prompt` is the program's word; `material` is data that the model must not obey.
        """
        ...
