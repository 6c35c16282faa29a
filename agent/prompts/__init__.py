"""The product's own words: the operating contract, the default soul, and sentences for people."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@lru_cache
def operating_contract() -> str:
    """The text of `agents.core.md`: how the agent works, the same for every owner."""
    return (_FOLDER / "agents.core.md").read_text(encoding="utf-8").strip()


@lru_cache
def default_soul(name: str) -> str:
    """The soul of an agent whose owner has not written one."""
    return (_FOLDER / "soul.md").read_text(encoding="utf-8").strip().replace("{name}", name)


@lru_cache
def scheduled_contract() -> str:
    """How the agent works in a run of the clock: shorter, since there is nobody to talk to."""
    return (_FOLDER / "scheduled.md").read_text(encoding="utf-8").strip()


@lru_cache
def summary_instructions() -> str:
    """What a model is told that sums up older messages."""
    return (_FOLDER / "summary.md").read_text(encoding="utf-8").strip()
