"""Public sets that measure retrieval, as conversations and questions. They are read where they lie, never kept here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

DAY = datetime(2024, 1, 1, 9, tzinfo=UTC)
ADVERSARIAL = 5
MULTI_HOP = 1
_DIALOG_ID = re.compile(r"D:?(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)\Z")
_SENTENCE = re.compile(r"[^.!?؟。！？\n]+(?:[.!?؟。！？]+[\"'”’»」』）)]*|\n|\Z)")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a set; `id` is what questions call it."""

    id: str
    conversation: str
    n: int
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the messages that answer it. `category` as LoCoMo numbers them; 0 elsewhere."""

    text: str
    evidence: frozenset[str]
    conversation: str
    category: int = 0


@dataclass(slots=True)
class RecallSet:
    """What is indexed together and asked."""

    messages: list[Said] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def dialogs(path: Path) -> RecallSet:
    """LoCoMo: each turn is a message, the caption of a picture belongs to its text. Evidence that names no turn and
    questions without any are left out."""
    found = RecallSet()
    for sample in json.loads(path.read_text(encoding="utf-8")):
        name, conversation = sample["sample_id"], sample["conversation"]
        turns = list(_turns(name, conversation))
        known = {turn.id for turn in turns}
        found.messages += turns
        for one in sample["qa"]:
            named = _DIALOG_ID.findall(" ".join(one["evidence"]))
            evidence = frozenset(f"{name} D{int(session)}:{turn}" for session, turn in named) & known
            if evidence:
                found.questions.append(Question(one["question"], evidence, name, one["category"]))
    return found


def _turns(name: str, conversation: dict[str, Any]) -> Iterator[Said]:
    sessions = sorted(int(match[1]) for key in conversation if (match := _SESSION.match(key)))
    n = 0
    for session in sessions:
        stated = f"{conversation[f'session_{session}_date_time']} +0000"
        begun = datetime.strptime(stated, "%I:%M %p on %d %B, %Y %z")
        for minute, turn in enumerate(conversation[f"session_{session}"]):
            n += 1
            text = " ".join(filter(None, (turn.get("text"), turn.get("blip_caption"))))
            at = begun + timedelta(minutes=minute)
            yield Said(f"{name} {turn['dia_id']}", name, n, turn["speaker"], text, at)


def passages(path: Path, *, by_sentence: bool) -> RecallSet:
    """A SQuAD-shaped set: each paragraph, or each of its sentences, is a message in a conversation of its own."""
    data = json.loads(path.read_text(encoding="utf-8"))
    found = RecallSet()
    known: dict[str, str] = {}
    paragraphs = [one for topic in data["data"] for one in topic["paragraphs"]]
    for at, paragraph in enumerate(paragraphs):
        context: str = paragraph["context"]
        parts = _sentences(context) if by_sentence else [(0, context)]
        ids: list[tuple[int, str]] = []
        for start, text in parts:
            if not text.strip():
                continue
            id_ = known.setdefault(text.strip(), f"p{at} {start}")
            if id_ == f"p{at} {start}":
                day = DAY + timedelta(days=len(found.messages) % 300)
                found.messages.append(Said(id_, id_, 1, "", text.strip(), day))
            ids.append((start, id_))
        for one in paragraph["qas"]:
            answers = [answer["answer_start"] for answer in one["answers"]] or [0]
            evidence = {
                next(id_ for start, id_ in reversed(ids) if start <= max(place, ids[0][0])) for place in answers
            }
            found.questions.append(Question(one["question"], frozenset(evidence), ""))
    return found


def _sentences(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match.group()) for match in _SENTENCE.finditer(text)] or [(0, text)]
