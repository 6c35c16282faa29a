"""How often a search finds what answers a question, on public sets; and how long it takes, in the same run.

The sets lie outside the project (`../shared/data/recall` from its root, or where HUDHUD_RECALL_DATA says) and are only
read. Searches go through the memory index as the program's own do: the text is a message's text, its speaker the
sender, the date of its session its time. A hit counts when it is a message that the set names as evidence.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex import index
from agent.cortex.search import Cortex
from agent.types import Person, Viewer
from tests.bench.figures import figure, percentile
from tests.bench.recall_sets import ADVERSARIAL, MULTI_HOP, Question, RecallSet, dialogs, passages

DATA = "HUDHUD_RECALL_DATA"
DEFAULT = Path(__file__).parents[3] / "shared" / "data" / "recall"
DEPTHS = (5, 10, 25, 50)
HITS = 50
OWNER = Viewer(Person("inapp:owner", "Owner", "owner"))
PASSAGES = {
    "xquad-ar": "arabic_xquad",
    "arcd": "arabic_arcd",
    "cmrc2018": "chinese_cmrc",
    "drcd": "chinese_drcd",
    "jsquad": "japanese_jsquad",
}
PAPER = "conv-26"
"""The conversation of which the LoCoMo paper prints a table, adversarial questions included."""


def folder() -> Path | None:
    """Where the sets are; None: they are not on this machine."""
    path = Path(os.environ.get(DATA) or DEFAULT)
    return path if path.is_dir() else None


class _Asked:
    """The sums over the questions of one kind."""

    def __init__(self) -> None:
        self.count = 0
        self.recall = dict[int, float](dict.fromkeys(DEPTHS, 0.0))
        self.reciprocal_rank = 0.0

    def add(self, question: Question, found: Sequence[str]) -> None:
        self.count += 1
        for depth in DEPTHS:
            self.recall[depth] += len(question.evidence.intersection(found[:depth])) / len(question.evidence)
        rank = next((at for at, id_ in enumerate(found, 1) if id_ in question.evidence), None)
        self.reciprocal_rank += 1 / rank if rank else 0.0

    def at(self, depth: int) -> float:
        return self.recall[depth] / max(1, self.count)

    @property
    def mrr(self) -> float:
        return self.reciprocal_rank / max(1, self.count)


class _Memory:
    """A set in an index of its own."""

    def __init__(self, path: Path, found: RecallSet) -> None:
        self._ids = {f"conversation:{said.conversation}#{said.n}": said.id for said in found.messages}
        conn = sqlite3.connect(":memory:", isolation_level=None)
        index.attach(conn, path / "index.db")
        conn.execute("BEGIN")
        for said in found.messages:
            index.index_message(
                conn,
                index.IndexedMessage(
                    conversation_id=said.conversation,
                    n=said.n,
                    role="user",
                    text=said.text,
                    sender=said.speaker,
                    sender_id=said.speaker.lower(),
                    session_key=f"inapp:{said.conversation}",
                    channel="inapp",
                    chat=said.conversation,
                    at=said.at,
                    message_id=said.id,
                ),
            )
        conn.execute("COMMIT")
        conn.close()
        self.cortex = Cortex(path / "index.db", path, _write, ZoneInfo("UTC"))
        self.took: list[float] = []

    async def find(self, question: Question, *, inside: bool) -> list[str]:
        begun = time.perf_counter()
        chat = question.conversation if inside else None
        answer = await self.cortex.search(OWNER, question.text, chat=chat, limit=HITS)
        self.took.append((time.perf_counter() - begun) * 1000)
        return [self._ids[hit.ref] for hit in answer.hits]


async def _write(work: Any) -> Any:
    raise AssertionError(f"a search wrote: {work}")


async def _dialogs(found: RecallSet) -> list[dict[str, Any]]:
    asked = {name: _Asked() for name in ("inside", "one_index", "multi_hop", "paper")}
    with TemporaryDirectory() as path:
        memory = _Memory(Path(path), found)
        await memory.cortex.open()
        for question in found.questions:
            inside = await memory.find(question, inside=True)
            if question.conversation == PAPER:
                asked["paper"].add(question, inside)
            if question.category == ADVERSARIAL:
                continue
            asked["inside"].add(question, inside)
            asked["one_index"].add(question, await memory.find(question, inside=False))
            if question.category == MULTI_HOP:
                asked["multi_hop"].add(question, inside)
        await memory.cortex.close()
    figures = [figure(f"recall_inside_r{depth}", asked["inside"].at(depth)) for depth in DEPTHS]
    figures.append(figure("recall_inside_mrr", asked["inside"].mrr))
    figures.append(figure("recall_one_index_r10", asked["one_index"].at(10)))
    figures.append(figure("recall_multi_hop_r10", asked["multi_hop"].at(10)))
    figures += [figure(f"recall_conv26_r{depth}", asked["paper"].at(depth)) for depth in DEPTHS]
    return figures + _times("dialogs", memory.took)


def _times(name: str, took: list[float]) -> list[dict[str, Any]]:
    return [figure(f"recall_{name}_{label}", percentile(took, share)) for label, share in (("p50", 0.5), ("p95", 0.95))]


async def _passages(name: str, found: RecallSet, questions: Iterable[Question]) -> tuple[dict[str, Any], list[float]]:
    asked = _Asked()
    with TemporaryDirectory() as path:
        memory = _Memory(Path(path), found)
        await memory.cortex.open()
        for question in questions:
            asked.add(question, await memory.find(question, inside=False))
        await memory.cortex.close()
    return figure(f"recall_{name}_r10", asked.at(10)), memory.took


async def run(data: Path | None = None, *, every: int = 1) -> list[dict[str, Any]]:
    """The figures of all sets in a folder; `every`: only each so manieth question to a passage. Empty, and said on
    the error stream, when the folder or a set is not there."""
    data = data or folder()
    if data is None:
        sys.stderr.write(f"recall: no sets in {DEFAULT}; {DATA} names another folder. Nothing was measured.\n")
        return []
    figures: list[dict[str, Any]] = []
    if (path := data / "locomo-a.json").is_file():
        figures += await _dialogs(dialogs(path))
    took: list[float] = []
    for file, name in PASSAGES.items():
        path = data / f"{file}-a.json"
        for by_sentence in (False, True) if path.is_file() else ():
            found = passages(path, by_sentence=by_sentence)
            grain = "sentence" if by_sentence else "paragraph"
            measured, times = await _passages(f"{name}_{grain}", found, found.questions[::every])
            figures.append(measured)
            took += times
    if took:
        figures += _times("passages", took)
    return figures


def table(figures: Iterable[dict[str, Any]]) -> str:
    """The figures as people compare them, beside what they are held to and what others reach."""
    lines = [f"{'':36} {'measured':>9} {'floor':>7} {'target':>7} {'beyond':>7}  baseline"]
    for one in figures:
        goals = [one["floor"], one["target"], one["beyond"]]
        shown = " ".join(f"{'' if goal is None else goal:>7}" for goal in goals)
        lines.append(f"{one['name']:36} {one['value']:>9} {shown}  {BASELINES.get(one['name'], '')}".rstrip())
    return "\n".join(lines)


BASELINES = {
    "recall_inside_r5": "FTS5 .507, chunks of three .649, best lexical mix .716",
    "recall_inside_r10": "FTS5 .574, MiniLM .495, chunks of three .749, best lexical mix .794, best hybrid .808",
    "recall_inside_r25": "FTS5 .671, chunks of three .831, best lexical mix .863",
    "recall_inside_r50": "FTS5 .718, chunks of three .878, best lexical mix .900",
    "recall_inside_mrr": "FTS5 .422, chunks of three .540, best lexical mix .613",
    "recall_multi_hop_r10": "DRAGON (paper) .474, best lexical mix .466",
    "recall_conv26_r5": "DRAGON (paper) .588, best lexical mix .683",
    "recall_conv26_r10": "DRAGON (paper) .675, best lexical mix .802",
    "recall_conv26_r25": "DRAGON (paper) .799, best lexical mix .888",
    "recall_conv26_r50": "DRAGON (paper) .848, best lexical mix .928",
    "recall_arabic_xquad_paragraph_r10": "Arabic: FTS5 .873, folded trigrams .966",
    "recall_arabic_xquad_sentence_r10": "Arabic: FTS5 .735, folded trigrams .881",
    "recall_chinese_cmrc_paragraph_r10": "FTS5 .169, trigrams .944, characters and bigrams .995",
    "recall_chinese_cmrc_sentence_r10": "FTS5 .118, trigrams .791, characters and bigrams .879",
    "recall_chinese_drcd_paragraph_r10": "FTS5 .170, trigrams .966, characters and bigrams .997",
    "recall_japanese_jsquad_paragraph_r10": "FTS5 .263, trigrams .962, characters and bigrams .983",
}
"""What other ways to search reached on these sets."""
