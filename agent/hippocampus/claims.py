"""Reads what a sentence claims, so that two of them can be held against each other without a model.

A sentence is cut into clauses; of each these are read: the stance (somebody likes it, lives there, something is so),
whether it holds or holds no more, what it is about (`head`) and in what respect (`context`: on WhatsApp, in the
morning). `relation` then says whether a new sentence supports an older one, contradicts it, or speaks of other things.
English and Arabic, by rules and a short word list; where the rules see nothing they say "other".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from agent.hippocampus import cues
from agent.hippocampus.facts import MENTION
from agent.hippocampus.lexicon import Lexicon, Word, forms_of, shared

Relation = Literal["supports", "contradicts", "other"]
Stance = Literal["like", "live", "work", "is", ""]
ALIKE_SHARE = 0.6
"""Two heads are the same when they share this part of all their words."""
PART_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Claim:
    """One clause. `strong`: of such claims one holds at a time (prefers, lives in). `text` is the clause as written.

    `ends`: it says that something holds no more, not only that it does not. `now`: it says that it is so by now.
    """

    stance: Stance
    holds: bool
    strong: bool
    head: tuple[Word, ...]
    context: tuple[Word, ...]
    text: str
    head_forms: frozenset[str] = field(default=frozenset(), compare=False)
    all_forms: frozenset[str] = field(default=frozenset(), compare=False)
    ends: bool = False
    now: bool = False

    @property
    def words(self) -> tuple[Word, ...]:
        return (*self.head, *self.context)


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole sentence: its key, its claims."""

    key: str
    claims: tuple[Claim, ...]

    @property
    def gone_only(self) -> bool:
        """True when all it says is that something holds no more."""
        return bool(self.claims) and not any(claim.holds for claim in self.claims)


class Reader:
    """Reads sentences; what was read once is kept."""

    def __init__(self, lexicon: Lexicon, sameness_key: Callable[[str], str]) -> None:
        self.lexicon = lexicon
        self._how, self._one = lexicon.of("how"), lexicon.of("one")
        self.key = sameness_key
        self.read = lru_cache(maxsize=50_000)(self._read)

    def _read(self, text: str, names: frozenset[str] = frozenset()) -> Reading:
        """`names`: forms of the names of those it is about; they say nothing of what is claimed."""
        plain = MENTION.sub(" ", text)
        key = self.key(plain)
        claims: list[Claim] = []
        for clause in _clauses(plain):
            found = self._claims(clause, names, claims[0] if claims else None)
            claims += [_marked(claim, clause, self.lexicon) for claim in found if claim.words]
        return Reading(key, tuple(claims))

    def _claims(self, clause: str, names: frozenset[str], before: Claim | None) -> list[Claim]:
        terms = self.lexicon.terms(clause)
        folded = " ".join(word.token for word in terms)
        stance, strong = _stance(folded)
        gone, negated = bool(cues.GONE.search(folded)), bool(cues.NOT.search(cues.GONE.sub(" ", folded)))
        dislikes = stance == "like" and bool(cues.DISLIKE.search(folded))
        holds = not (gone ^ negated ^ dislikes) if not (gone and negated) else dislikes
        if not stance and before is not None and before.stance in {"like", "live", "work"}:
            stance, strong = before.stance, before.strong  # "..., now coffee"
        if stance == "live" and self._is_a_time(folded):
            stance, strong = "is", False  # "The meeting has moved to 10:15" says nothing of where anybody lives
        claims: list[Claim] = []
        if stance in {"like", "is", ""} and (swap := cues.REPLACED.search(folded)):
            old = swap["old"] or swap["old2"] or swap["old_"]
            new = swap["new"] or swap["new2"] or swap["new_"]
            stance = "like" if stance == "like" else ""
            claims.append(self._claim(stance, False, True, old, names, clause))
            return [*claims, self._claim(stance, True, True, new, names, clause)]
        change = cues.FROM_TO.search(folded) if stance in {"like", "live", "work", ""} else None
        if change and stance and re.search(r"\bswitched|\bmoved|\bchanged|\brelocated|انتقل|تحول", folded):
            old, new = change["old"] or change["old_"], change["new"] or change["new_"]
            claims.append(self._claim(stance, False, True, old, names, clause))
            return [*claims, self._claim(stance, True, True, new, names, clause)]
        rest = cues.REST.search(folded, 1) if stance == "like" and strong and not gone else None
        if (
            rest
            and folded[: rest.start()].strip()
            and self._claim(stance, True, strong, folded[: rest.start()], names, "").words
        ):
            claims.append(self._claim(stance, False, strong, folded[rest.end() :], names, clause))
            folded = folded[: rest.start()]
            holds = not gone ^ bool(cues.NOT.search(folded)) ^ dislikes
        if stance == "like":
            folded = _respect_last(folded)
        if stance == "is":
            return [self._state(folded, holds, names, clause)]
        return [self._claim(stance, holds, strong, folded, names, clause), *claims]

    def _claim(self, stance: Stance, holds: bool, strong: bool, folded: str, names: frozenset[str], text: str) -> Claim:
        """`folded` cut where its respect begins: what somebody lives in, works at, is about the thing itself."""
        at = None
        if stance == "like":
            at = next((m for m in cues.CONTEXT.finditer(folded) if self._is_whole(folded[: m.start()], names)), None)
        head = folded if at is None else folded[: at.start()]
        return self._made(stance, holds, strong, head, "" if at is None else folded[at.start() :], names, text)

    def _state(self, folded: str, holds: bool, names: frozenset[str], text: str) -> Claim:
        """`X is Y`: X is what it is about, Y how it is."""
        at = cues.IS.search(folded)
        head, context = (folded[: at.start()], folded[at.end() :]) if at else (folded, "")
        claim = self._made("is", holds, False, head, context, names, text)
        one = bool(claim.head) and not claim.head_forms.isdisjoint(self._one)
        if not claim.head:
            return self._made("", holds, False, folded, "", names, text)
        return Claim("is", holds, one, claim.head, claim.context, text, claim.head_forms, claim.all_forms)

    def _made(
        self, stance: Stance, holds: bool, strong: bool, head: str, context: str, names: frozenset[str], text: str
    ) -> Claim:
        heads, contexts = self._content(head, names), self._content(context, names)
        forms = forms_of(heads)
        return Claim(stance, holds, strong, heads, contexts, text.strip(), forms, forms | forms_of(contexts))

    def _content(self, folded: str, names: frozenset[str]) -> tuple[Word, ...]:
        words = self.lexicon.content(folded)
        return tuple(word for word in words if word.token not in self._how and word.forms.isdisjoint(names))

    def _is_a_time(self, folded: str) -> bool:
        """True where something moves to an hour or a day, and not somebody to a place."""
        moved = cues.CHANGED.search(folded)
        to = self.lexicon.content(folded[moved.end() :])[:2] if moved else []
        return any(word.token[:1].isdigit() or word.respects & {"weekday", "daytime"} for word in to)

    def _is_whole(self, folded: str, names: frozenset[str]) -> bool:
        """True for what can be liked as such: after "staying" (in hostels) the thing itself is still to come."""
        words = self._content(folded, names)
        return bool(words) and not (len(words) == 1 and _is_gerund(words[0]))


def _is_gerund(word: Word) -> bool:
    """An "-ing" word of which the list knows no meaning of its own (as it does of meetings, of swimming)."""
    return cues.GERUND.fullmatch(word.token) is not None and not any(form.startswith("=") for form in word.forms)


def _marked(claim: Claim, clause: str, lexicon: Lexicon) -> Claim:
    """The claim with what its clause says of time: that it has ended, that it is so by now."""
    folded = " ".join(word.token for word in lexicon.terms(clause))
    ends = not claim.holds and bool(cues.GONE.search(folded) or cues.REPLACED.search(folded))
    return replace(claim, ends=ends, now=claim.holds and bool(cues.NOW.search(folded) or cues.CHANGED.search(folded)))


def relation(new: Reading, old: Reading) -> Relation:
    """How a sentence bears on an older one about the same persons and things."""
    if new.key == old.key:
        return "supports"
    found = {_of_claims(one, other) for one in new.claims for other in old.claims}
    if "supports" in found and "contradicts" in found:
        # "No longer tea, now coffee" against "now coffee": what holds decides.
        held = {_of_claims(one, other) for one in new.claims if one.holds for other in old.claims if other.holds}
        return "contradicts" if "contradicts" in held or "supports" not in held else "supports"
    return "contradicts" if "contradicts" in found else "supports" if "supports" in found else "other"


def likeness(new: Reading, old: Reading) -> float:
    """0 to 1: how much of their words two sentences share, at their most alike clauses."""
    return max((_alike(a.words, a.all_forms, b.words, b.all_forms) for a in new.claims for b in old.claims), default=0)


def _of_claims(new: Claim, old: Claim) -> Relation:
    if new.ends and not new.stance and old.stance == "is" and old.holds:
        # "replaced the iPhone with ..." against "the phone is an iPhone"
        values = forms_of(old.context)
        return "contradicts" if new.words and shared(new.words, values) == len(new.words) else "other"
    if new.ends and not new.stance and old.stance in {"live", "work"} and old.holds and old.words:
        # "quit Oracle to start a company" against "joined Oracle"
        return "contradicts" if shared(old.words, new.all_forms) == len(old.words) else "other"
    places = {new.stance, old.stance} & {"live", "work"}
    if new.stance != old.stance and (places or "is" in {new.stance, old.stance}):
        return "other"
    if new.stance in {"live", "work"}:
        return _of_places(new, old)
    if new.stance == "is" and old.stance == "is":
        return _of_states(new, old)
    if (new.stance == "like") != (old.stance == "like") and new.holds == old.holds:
        return "other"
    return _of_likings(new, old)


def _of_places(new: Claim, old: Claim) -> Relation:
    """Where somebody lives or works: another place takes the place of the first."""
    same = _alike(new.words, new.all_forms, old.words, old.all_forms) >= ALIKE_SHARE or _part(new, old) >= ALIKE_SHARE
    if same:
        return "supports" if new.holds == old.holds else "contradicts"
    return "contradicts" if new.holds and old.holds else "other"


def _of_states(new: Claim, old: Claim) -> Relation:
    """X is Y, X is Z."""
    if _alike(new.head, new.head_forms, old.head, old.head_forms) < ALIKE_SHARE:
        return "other"
    values, others = forms_of(new.context), forms_of(old.context)
    same = _alike(new.context, values, old.context, others) >= ALIKE_SHARE and _figures(new) == _figures(old)
    if same:
        return "supports" if new.holds == old.holds else "contradicts"
    rivals = _rivals(new.context, old.context)
    changed = new.holds and old.holds and bool(new.context) and bool(old.context)
    return (
        "contradicts" if changed and (new.strong or new.now or rivals or (_figures(new) and _figures(old))) else "other"
    )


def _of_likings(new: Claim, old: Claim) -> Relation:
    """Likes and preferences, and whatever else two clauses say in nearly the same words."""
    heads = _alike(new.head, new.head_forms, old.head, old.head_forms)
    respects = _respects(new, old)
    if new.holds != old.holds:
        near = heads >= PART_SHARE or min(len(new.head), len(old.head)) == _common(new, old) > 0
        return "contradicts" if near and respects != "other" else "other"
    if heads >= ALIKE_SHARE and respects != "other":
        if _rivals(new.head, old.head) or respects == "instead" or _figures(new) != _figures(old):
            return "contradicts" if new.holds else "other"
        return "supports"
    if not new.holds or not (new.strong and old.strong) or respects == "other":
        return "other"
    # Two preferences in one respect: of window seats and aisle seats, of tea and coffee, one holds at a time.
    if _rivals(new.head, old.head):
        return "contradicts"
    if respects == "same" and _differ(new, old) and (heads >= 1 / 3 or new.context):
        return "contradicts"
    return "other"


def _respects(new: Claim, old: Claim) -> Literal["same", "open", "instead", "other"]:
    """How the respects of two claims fit: alike, one without any, of a kind that excludes each other, or others."""
    if not new.context and not old.context:
        return "same"
    if not new.context or not old.context:
        return "open"
    forms, others = forms_of(new.context), forms_of(old.context)
    if _alike(new.context, forms, old.context, others) >= PART_SHARE and not _rivals(new.context, old.context):
        return "same"
    rivals = _rivals(new.context, old.context)
    if rivals & {"daytime", "weekday"} and new.strong and old.strong and "meeting" not in rivals:
        return "instead"
    return "other"


def _alike(
    some: tuple[Word, ...], forms: frozenset[str], others: tuple[Word, ...], other_forms: frozenset[str]
) -> float:
    """The part of the words of both that they share."""
    if not some or not others:
        return 0.0
    common = min(shared(some, other_forms), shared(others, forms))
    return common / (len(some) + len(others) - common)


def _part(new: Claim, old: Claim) -> float:
    """The part of the shorter's words that stand in the longer too."""
    short, long = (new, old) if len(new.words) <= len(old.words) else (old, new)
    return shared(short.words, long.all_forms) / len(short.words) if short.words else 0.0


def _common(new: Claim, old: Claim) -> int:
    return min(shared(new.head, old.head_forms), shared(old.head, new.head_forms))


def _differ(new: Claim, old: Claim) -> bool:
    """Each has a word the other lacks, so that neither only says more of the same."""
    return shared(new.head, old.head_forms) < len(new.head) and shared(old.head, new.head_forms) < len(old.head)


def _rivals(some: tuple[Word, ...], others: tuple[Word, ...]) -> frozenset[str]:
    """The respects in which both name something, and not the same."""
    found: set[str] = set()
    for word in some:
        for other in others:
            both = word.respects & other.respects
            if both and word.forms.isdisjoint(other.forms):
                found |= both
    shared_ones = {
        name for word in some for other in others if not word.forms.isdisjoint(other.forms) for name in word.respects
    }
    return frozenset(found - shared_ones)


def _figures(claim: Claim) -> frozenset[str]:
    return frozenset(word.token for word in claim.words if word.token[:1].isdigit())


def _respect_last(folded: str) -> str:
    """ "For trips I prefer the train" with its respect behind: "prefer the train for trips"."""
    verb = cues.LIKE.search(folded) or cues.DISLIKE.search(folded)
    lead = cues.CONTEXT.match(folded)
    if verb is None or lead is None or verb.start() == 0:
        return folded
    return f"{folded[verb.start() :]} {folded[: verb.start()]}"


def _stance(folded: str) -> tuple[Stance, bool]:
    if cues.LIKE.search(folded) or cues.DISLIKE.search(folded):
        return "like", bool(cues.STRONG.search(folded))
    if cues.WORK.search(folded):
        return "work", True
    if cues.LIVE.search(folded):
        return "live", True
    return ("is", False) if cues.IS.search(folded) else ("", False)


def _clauses(text: str) -> list[str]:
    return [part.strip() for part in cues.CUTS.split(text) if part and part.strip()]
