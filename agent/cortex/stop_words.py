"""Words too common to search for. They leave a query, never the index."""

from __future__ import annotations

from pathlib import Path

from agent.cortex.text import fold

STOP_WORDS = frozenset(fold(Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8"))[0].split())
"""English and Arabic, in their folded form."""
