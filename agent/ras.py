"""Scores what might help and shares out the tokens: the relevance scorer. Deterministic, no model call."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.limits import BUDGET_SHARES

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_ARABIC_LETTERS = str.maketrans("أإآٱىةؤئ", "اااايهوي")
_QUERY_CHARS_MAX = 4_096
_WORDS_WEIGHT = 0.5
"""Half of a score is the share of the query's words a candidate holds, half what the index said of it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may go into a prompt. `weight` >= 0 is the finder's own score: only its order of size counts."""

    key: str
    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate and its relevance, 0 to 1."""

    candidate: Candidate
    score: float


class Ras:
    """Relevance scorer: shares a budget and ranks candidates."""

    def share_budget(self, total_tokens: int, wants: Mapping[str, int]) -> dict[str, int]:
        """Tokens for each kind of `BUDGET_SHARES`: what it wants, as far as its share goes, and what others leave.

        A kind never gets more than it wants nor less than its share when it wants that much; the sum never passes
        `total_tokens`; when all wants fit, all are met. What is left over goes to those still short in proportion
        to their shares. A kind that is not wanted gets 0. Raises KeyError for a kind without a share.
        """
        total = max(0, total_tokens)
        shares = {kind: BUDGET_SHARES[kind] for kind in wants}
        given = {kind: min(max(0, want), int(total * shares[kind])) for kind, want in wants.items()}
        left = total - sum(given.values())
        short: list[str] = [kind for kind, want in wants.items() if want > given[kind]]
        while left > 0 and short:
            weight = sum(shares[kind] for kind in short)
            # At least one token a round goes to the first in line: rounding down cannot keep the loop alive for ever.
            parts = {kind: int(left * shares[kind] / weight) for kind in short}
            parts[short[0]] = max(1, parts[short[0]])
            for kind in short:
                part = min(parts[kind], wants[kind] - given[kind])
                given[kind] += part
                left -= part
            short = [kind for kind in short if wants[kind] > given[kind]]
        return given

    def rank(self, query: str, candidates: Sequence[Candidate]) -> tuple[Scored, ...]:
        """All candidates, the most relevant first; equal ones by key, so that the order never changes by chance."""
        asked = _terms(query[:_QUERY_CHARS_MAX])
        heaviest = max((candidate.weight for candidate in candidates), default=0.0)
        scored: list[Scored] = []
        for candidate in candidates:
            overlap = len(asked & _terms(candidate.text)) / len(asked) if asked else 0.0
            weight = candidate.weight / heaviest if heaviest > 0 else 0.0
            scored.append(Scored(candidate, _WORDS_WEIGHT * overlap + (1 - _WORDS_WEIGHT) * weight))
        return tuple(sorted(scored, key=lambda item: (-item.score, item.candidate.key)))


def _terms(text: str) -> frozenset[str]:
    """Words without case, marks and Arabic spelling variants; pairs of characters where a script has no spaces."""
    flat = text.casefold()
    if not flat.isascii():
        flat = unicodedata.normalize("NFKD", flat.translate(_ARABIC_LETTERS))
        flat = "".join(c for c in flat if not unicodedata.combining(c) and c != "\u0640")
    terms: set[str] = set()
    for word in _WORD.findall(flat):
        if _UNSPACED.search(word):
            terms.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            terms.add(word)
    return frozenset(terms)
