"""The per-chat logs: every line once, whatever was torn, lost or cut short."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.types import Turn, TurnPort, TurnResult
from gateway.readlog import append_bytes, file_name, heal, read_lines
from tests.fakes.hub import OWNER, hub


@pytest.mark.parametrize(
    ("content", "ids", "warned"),
    [
        (b'{"id":1,"t":"a"}\n{"id":2,"t":"b', [1], "line 2"),
        (b'{"id":1}\n{"id":2,\n{"id":3}\n', [1, 3], "line 2"),
        (b'{"id":1}\n{"id":2,"t":"\xe4\xbd', [1], "line 2"),
        (b'\n\n{"id":1}\n[1]\n"x"\n{"id":2}', [1, 2], "line 4"),
        (b"", [], ""),
    ],
)
def test_every_line_that_parses_is_read_and_the_rest_is_named(
    tmp_path: Path, caplog: Any, content: bytes, ids: list[int], warned: str
) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(content)
    assert [line["id"] for line in read_lines(path)] == ids
    assert warned in caplog.text
    assert not warned or str(path) in caplog.text


@pytest.mark.parametrize("tail", [b'{"id":2,"t":"\xe4\xbd', b'{"id":2', b"{", b"\xff\xfe", b'"' * 70_000])
def test_a_torn_tail_does_not_damage_what_is_appended(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b'{"id":1}\n' + tail)
    heal(path)
    append_bytes(path, b'{"id":3}\n')
    assert [line["id"] for line in read_lines(path)] == [1, 3]


def test_a_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b'{"id":1}\n{"id":2}')
    heal(path)
    append_bytes(path, b'{"id":3}\n')
    assert [line["id"] for line in read_lines(path)] == [1, 2, 3]


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_file_names_are_safe_short_and_never_shared(chats: list[str]) -> None:
    names = [file_name(chat) for chat in chats]
    assert names[0] != names[1]
    for name in names:
        assert len(name.encode()) <= 255
        assert "/" not in name
        assert not name.startswith(".")


@given(st.text(min_size=250, max_size=400), st.text(min_size=1, max_size=5))
def test_long_names_that_begin_alike_are_told_apart(start: str, end: str) -> None:
    assert file_name(start) != file_name(start + end)


async def _fill(home: Path) -> Path:
    async with hub(home) as core:
        for n in range(5):
            await core.say(f"m{n}")
            await core.quiet()
    return home / "workspace" / "readlog" / "telegram" / file_name(OWNER)


EXPECTED = [text for n in range(5) for text in (f"m{n}", f"re: m{n}")]


@pytest.mark.parametrize("damage", ["gone", "empty", "torn", "half", "whole"])
async def test_lines_that_a_file_lacks_are_made_up_at_start(tmp_path: Path, damage: str) -> None:
    path = await _fill(tmp_path / "h")
    whole = path.read_bytes()
    assert [json.loads(line)["text"] for line in whole.splitlines()] == EXPECTED
    if damage == "gone":
        path.unlink()
    elif damage != "whole":
        path.write_bytes({"empty": b"", "torn": whole[:-7], "half": whole[: len(whole) // 2]}[damage])
    async with hub(tmp_path / "h") as core:
        assert [line["text"] for line in core.log()] == EXPECTED


@pytest.mark.parametrize("damage", ["gone", "torn", "whole"])
async def test_marked_files_are_made_up_too(tmp_path: Path, damage: str) -> None:
    async with hub(tmp_path / "h") as core:
        for n in range(5):
            await core.say(f"m{n}")
            await core.quiet()
            if n == 3:
                await core.readlog.mark()
    path = tmp_path / "h" / "workspace" / "readlog" / "telegram" / file_name(OWNER)
    if damage == "gone":
        path.unlink()
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:-3])
    async with hub(tmp_path / "h") as core:
        assert [line["text"] for line in core.log()] == EXPECTED


async def test_a_line_of_a_person_in_the_file_survives(tmp_path: Path) -> None:
    path = await _fill(tmp_path / "h")
    append_bytes(path, b'{"id":"mine","text":"written by hand"}\n')
    async with hub(tmp_path / "h") as core:
        await core.say("m5")
        await core.quiet()
        assert [line["text"] for line in core.log()] == [*EXPECTED, "written by hand", "m5", "re: m5"]


async def test_a_disk_that_fills_up_in_the_middle_of_a_line_delays_the_turn_and_damages_nothing(
    tmp_path: Path,
) -> None:
    alerts: list[str] = []
    full = [True]
    waits = 0

    def append(path: Path, data: bytes) -> None:
        if full[0]:
            append_bytes(path, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        append_bytes(path, data)

    async def sleep(seconds: float) -> None:
        nonlocal waits
        waits += 1
        full[0] = waits < 3

    options = {"append": append, "alert": alerts.append, "sleep": sleep}
    async with hub(tmp_path / "h", readlog=options) as core:
        await core.say("hello")
        await core.quiet()
        assert [line["text"] for line in core.log()] == ["hello", "re: hello"]
        assert core.channel.texts == ["re: hello"]
    assert len(alerts) == 2
    assert "cannot be written" in alerts[0]


async def test_the_line_stands_before_the_turn_begins(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    async def looks(turn: Turn, port: TurnPort) -> TurnResult:
        seen.append([line["text"] for line in core.log()])
        return TurnResult(turn.id, "done", "ok", ("ok",))

    async with hub(tmp_path / "h", looks) as core:
        await core.say("hello")
        await core.quiet()
    assert seen == [["hello"]]


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(read_lines(tmp_path / "none.jsonl")) == []
