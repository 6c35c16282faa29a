"""Speed of the readable memory: reflection over a year of days, and recall from it. No model."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.hippocampus.reflection import Reflection
from agent.types import Person, Viewer
from tests.bench.figures import figure, percentile
from tests.fakes.index_of_memory import a_memory_index

DAYS = 365
FACTS = 5_000
QUESTIONS = 120
FIRST = date(2025, 12, 1)
OWNER = Viewer(Person("inapp:1", "Owner", "owner"))
_NAMES = ("Peter", "Layla", "Omar", "Sara", "خالد", "نورة", "الحارث", "The-Castle", "warelay", "Owner")
_THINGS = ("tea", "coffee", "window seats", "aisle seats", "short answers", "long answers", "jazz", "early flights")
_ARABIC_THINGS = ("الشاي", "القهوة", "الردود المختصرة", "الردود الطويلة", "القطار")
_CITIES = ("Berlin", "Rome", "Cairo", "Lisbon", "Oslo", "Riyadh")


def _bullet(rng: random.Random, n: int) -> str:
    name = f"{rng.choice(_NAMES)}{rng.randrange(10) or ''}"
    match rng.randrange(6):
        case 0:
            return f"- O(c=0.{rng.randrange(60, 99)}) @{name}: Prefers {rng.choice(_THINGS)}."
        case 1:
            return f"- O @{name}: يفضل {rng.choice(_ARABIC_THINGS)}."
        case 2:
            return f"- W @{name}: moved to {rng.choice(_CITIES)} for project {n}."
        case 3:
            return f"- B @{name}: I mended fault {n} of the importer."
        case 4:
            return f"- O @{name}: No longer prefers {rng.choice(_THINGS)}."
        case _:
            return f"- W @{name}: met @{rng.choice(_NAMES)} about budget {n}."


def write_year(workspace: Path, days: int, facts: int) -> None:
    """Day files with entries and Retain sections."""
    rng = random.Random(11)
    folder = workspace / "brain" / "hippocampus" / "episodes"
    folder.mkdir(parents=True)
    for n in range(days):
        day = FIRST + timedelta(days=n)
        lines = [
            f"# {day}",
            "",
            f"## 10:00 [telegram] - note {n}",
            f"- User: note {n} on the garden",
            "- Reply: Noted.",
        ]
        share = [_bullet(rng, k) for k in range(n * facts // days, (n + 1) * facts // days)]
        lines += ["", "## Retain", "", *share]
        (folder / f"{day}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _questions(count: int) -> list[str]:
    rng = random.Random(5)
    asked = (
        "What does {name} prefer?",
        "Where does {name} live?",
        "ماذا يفضل {name}؟",
        "what did {name} prefer in March?",
        "tell me about {name}",
        "what was mended last month?",
        "budget of {name} since June",
    )
    return [rng.choice(asked).format(name=rng.choice(_NAMES).replace("-", " ")) for _ in range(count)]


async def _measure(folder: Path, days: int, facts: int, questions: int) -> dict[str, float]:
    workspace = folder / "workspace"
    write_year(workspace, days, facts)
    now = datetime.combine(FIRST + timedelta(days=days), datetime.min.time(), UTC)
    async with a_memory_index(workspace) as index:
        reflection = Reflection(workspace, index, ZoneInfo("UTC"), lambda: now)
        begun = time.perf_counter()
        done = await reflection.reflect()
        first = time.perf_counter() - begun
        assert done.changed
        begun = time.perf_counter()
        again = await reflection.reflect()
        second = time.perf_counter() - begun
        assert not again.changed
        await reflection.recall(OWNER, "Peter", {})
        took: list[float] = []
        for text in _questions(questions):
            begun = time.perf_counter()
            await reflection.recall(OWNER, text, {})
            took.append(time.perf_counter() - begun)
    return {"first": first, "again": second, "recall_p50": percentile(took, 0.5), "recall_p95": percentile(took, 0.95)}


def run(days: int = DAYS, facts: int = FACTS, questions: int = QUESTIONS) -> list[dict[str, Any]]:
    """The figures for so many days with so many facts."""
    with TemporaryDirectory() as folder:
        measured = asyncio.run(_measure(Path(folder), days, facts, questions))
    return [
        figure("reflect_year", measured["first"]),
        figure("reflect_year_again", measured["again"]),
        figure("reflect_recall_p50", measured["recall_p50"] * 1000),
        figure("reflect_recall_p95", measured["recall_p95"] * 1000),
    ]
