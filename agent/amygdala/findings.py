"""What was found in a call, and the verdict it comes to. The sentences are in reasons.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from agent.amygdala.lookalikes import visible
from agent.types import Decision, Verdict

REASONS_MAX = 5
"""So many sentences an owner reads about one call."""
DETAIL_CHARS = 80

Level = Literal["confirm", "block"]


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((Path(__file__).parent / "reasons.toml").read_text(encoding="utf-8"))


class Findings:
    """Collects reasons. One `block` makes the call blocked, else one `confirm` makes it one to confirm, else it is
    safe, whatever the order they come in."""

    def __init__(self) -> None:
        self._found: dict[Level, dict[tuple[str, str], None]] = {"block": {}, "confirm": {}}

    def add(self, level: Level, reason: str, detail: str = "") -> None:
        """`reason` is a key of reasons.toml, `detail` what stands in it for {}."""
        self._found[level][(reason, visible(detail[:DETAIL_CHARS], code=True))] = None

    def say(self, level: Level, sentence: str) -> None:
        """A reason in the words of a capability."""
        self._found[level][("", sentence)] = None

    @property
    def decision(self) -> Decision:
        return "block" if self._found["block"] else "confirm" if self._found["confirm"] else "safe"

    def take(self, other: Findings, *, blocks_only: bool = False) -> None:
        """Adds what another found."""
        self._found["block"].update(other._found["block"])
        if not blocks_only:
            self._found["confirm"].update(other._found["confirm"])

    def verdict(self) -> Verdict:
        """The decision, with its reasons in English and Arabic."""
        decision = self.decision
        if decision == "safe":
            return Verdict("safe")
        found = list(self._found[decision])[:REASONS_MAX]
        return Verdict(decision, _sentences(found, "en"), _sentences(found, "ar"))


def _sentences(found: list[tuple[str, str]], language: str) -> str:
    return " ".join(
        _reasons()[reason][language].replace("{}", detail) if reason else detail for reason, detail in found
    )
