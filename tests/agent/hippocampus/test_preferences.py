"""The digest of learned preferences in the owner's prompt."""

from __future__ import annotations

from agent.hippocampus.preferences import digest

OPINIONS = """# Opinions

## Prefers tea
- confidence: 0.90
- entities: @Peter
- for: brain/hippocampus/episodes/2026-11-02.md#L5

## I prefer mail
- confidence: 0.80
- entities: @Owner
- for: brain/hippocampus/episodes/2026-11-02.md#L6
- against: brain/hippocampus/episodes/2026-11-09.md#L6

## I prefer calls
- confidence: 0.70
- entities: @Owner
- for: brain/hippocampus/episodes/2026-11-09.md#L6

## Might like jazz
- confidence: 0.30
"""
KEPT = (
    "# Preferences\n\n- Short answers\n- I prefer calls (brain/x.md#L1, 2026-11-09)\n\n## Proposed\n\n- Long answers\n"
)


def test_what_holds_the_owners_first_and_each_once() -> None:
    assert digest(OPINIONS, KEPT, 500) == "- I prefer calls (0.70)\n- Peter: Prefers tea (0.90)\n- Short answers"


def test_it_keeps_to_its_limit() -> None:
    assert digest(OPINIONS, KEPT, 30) == "- I prefer calls (0.70)"
    assert digest("", "", 500) == ""
