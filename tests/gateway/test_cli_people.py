"""`hudhud people`: letting in and putting out, effective at once in a gateway that runs."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.store import Store
from gateway.store.persons import Pairing

NOW = datetime.now(UTC)


def run(home: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--home", str(home), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "config.toml").write_text("[channels.telegram]\nowner = 7\nallow = [8]\n")
    return folder


async def given(home: Path, *pairings: Pairing) -> None:
    store = Store(home)
    await store.open()
    for pairing in pairings:
        await store.open_pairing(pairing, NOW, 3)
    await store.close()


def test_a_person_is_let_in_and_put_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, capsys, "people", "allow", "telegram:99", "--name", "Omar")[0] == 0
    _, listed = run(home, capsys, "people", "list")
    people = [(one["channel"], one["id"], one["rights"], one["name"], one["from"]) for one in listed["people"]]
    assert people == [
        ("telegram", "7", "owner", "", "settings"),
        ("telegram", "8", "allowed", "", "settings"),
        ("telegram", "99", "allowed", "Omar", "people"),
    ]
    assert run(home, capsys, "people", "remove", "telegram:99")[0] == 0
    _, listed = run(home, capsys, "people", "list")
    assert len(listed["people"]) == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("allow", "99"), 2),
        (("allow", "pigeon:99"), 2),
        (("allow", "telegram:"), 2),
        (("remove", "telegram:98"), 3),
        (("remove", "telegram:8"), 2),
        (("pair", "ACDEFGHJ"), 3),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int
) -> None:
    exit_code, answer = run(home, capsys, "people", *arguments)
    assert exit_code == code
    assert answer["error"]["message"]
    assert answer["error"]["remedy"]


def test_nobody_is_nothing_to_say(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config.toml").write_text("")
    assert main(["people", "list", "--home", str(home)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("typed", ["ACDEFGHJ", "acde fghj", "ACDE-FGHJ"])
async def test_a_code_lets_in_once(home: Path, capsys: pytest.CaptureFixture[str], typed: str) -> None:
    await given(home, Pairing("ACDEFGHJ", "telegram", "99", "Omar", NOW + timedelta(hours=1)))
    code, answer = await asyncio.to_thread(run, home, capsys, "people", "pair", typed)
    assert (code, answer["id"], answer["rights"]) == (0, "99", "allowed")
    code, _ = await asyncio.to_thread(run, home, capsys, "people", "pair", typed)
    assert code == 3


async def test_a_code_is_good_for_its_hour_only(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await given(home, Pairing("ACDEFGHJ", "telegram", "99", "Omar", NOW + timedelta(seconds=0.001)))
    code, _ = await asyncio.to_thread(run, home, capsys, "people", "pair", "ACDEFGHJ")
    assert code == 3
