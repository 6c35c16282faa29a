"""Where a message stands in its chat's read log, and how these lines are opened."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.cortex.search import Cortex
from tests.fakes.library import OWNER, START, Library, guest, open_library


def log_line(number: int, text: str, at: datetime, way: str = "in") -> str:
    sender = {"id": "8", "name": "Sana"}
    fields = {"id": f"m{number}", "at": at.isoformat(), "dir": way, "kind": "text", "sender": sender, "text": text}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def write(log: Path, text: str) -> None:
    log.write_text(text, encoding="utf-8")


def append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


def remove(log: Path) -> None:
    log.unlink()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "workspace" / "readlog" / "telegram" / "1.jsonl"
    path.parent.mkdir(parents=True)
    return path


def with_logs(library: Library) -> Cortex:
    return Cortex(
        library.path, library.workspace, library.write, ZoneInfo("UTC"), log_name=lambda chat: f"{chat}.jsonl"
    )


async def context_of(cortex: Cortex, query: str) -> str:
    return (await cortex.search(OWNER, query)).hits[0].context


async def test_a_hit_names_the_lines_around_it_and_they_open_readably(tmp_path: Path, log: Path) -> None:
    words = ["pear", "plum", "fig", "kiwi", "date", "lime", "melon", "guava", "papaya", "quince"]
    times = [START + timedelta(minutes=at, hours=5 if at >= 6 else 0) for at in range(len(words))]
    write(log, "".join(log_line(at, f"a {word}\u2028or so", times[at]) for at, word in enumerate(words)))
    async with open_library(tmp_path) as library:
        for at, word in enumerate(words):
            await library.say(f"a {word}\u2028or so", message_id=f"m{at}", at=times[at])
        cortex = with_logs(library)
        await cortex.open()
        assert await context_of(cortex, "kiwi") == "file:readlog/telegram/1.jsonl#L1-L6"
        after_the_pause = await context_of(cortex, "guava")
        assert after_the_pause == "file:readlog/telegram/1.jsonl#L7-L10"
        opened = await cortex.get(OWNER, after_the_pause, 50)
        await cortex.close()
    heads = [line for line in opened.splitlines() if line.startswith("[")]
    assert [head.partition("]")[0] for head in heads] == ["[L7", "[L8", "[L9", "[L10"]
    assert all("Sana" in head for head in heads)
    assert "guava" in opened
    assert "kiwi" not in opened


async def test_the_lines_stay_right_when_a_log_grows_or_is_edited(tmp_path: Path, log: Path) -> None:
    write(log, log_line(1, "first", START))
    async with open_library(tmp_path) as library:
        await library.say("zebra", message_id="m2", at=START)
        cortex = with_logs(library)
        await cortex.open()
        assert await context_of(cortex, "zebra") == ""
        append(log, log_line(2, "zebra", START))
        assert await context_of(cortex, "zebra") == "file:readlog/telegram/1.jsonl#L1-L2"
        long_ago = START - timedelta(days=1)
        write(log, log_line(0, "older", long_ago) + "{torn\n" + log_line(2, "zebra", START))
        assert await context_of(cortex, "zebra") == "file:readlog/telegram/1.jsonl#L1-L3"
        write(log, log_line(0, "older", long_ago) + log_line(2, "zebra", START) + log_line(3, "more", START))
        assert await context_of(cortex, "zebra") == "file:readlog/telegram/1.jsonl#L2-L3"
        remove(log)
        assert await context_of(cortex, "zebra") == ""
        await cortex.close()


async def test_an_answer_is_found_by_its_text_and_others_than_the_owner_get_no_context(
    tmp_path: Path, log: Path
) -> None:
    write(log, log_line(1, "where?", START) + log_line(77, "in the drawer", START, "out"))
    async with open_library(tmp_path) as library:
        await library.say("in the drawer", role="assistant", message_id="inner", at=START)
        cortex = with_logs(library)
        await cortex.open()
        assert await context_of(cortex, "drawer") == "file:readlog/telegram/1.jsonl#L1-L2"
        seen = await cortex.search(guest("telegram:1"), "drawer")
        assert [hit.context for hit in seen.hits] == [""]
        await cortex.close()
