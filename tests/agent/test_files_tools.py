"""Files of the workspace through the tools: nothing outside it, nothing hidden, nothing lost."""

from __future__ import annotations

import os
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.capabilities.files.tools import Files
from agent.motor import call_context
from agent.places import NOT_ALLOWED, inside
from agent.types import ToolFailure
from tests.fakes.turns import MONDAY, a_turn

CONTEXT = call_context(a_turn(), MONDAY)
OTHER = call_context(a_turn(conversation_id="c-2"), MONDAY)

OUTSIDE = [
    "../secret.md",
    "notes/../../secret.md",
    "notes/./../../secret.md",
    "..%2fsecret.md",
    "%2e%2e/secret.md",
    "%252e%252e%252fsecret.md",
    "..\\secret.md",
    "..%5csecret.md",
    "../ws-victim/a.md",
    "..%2fws-victim%2fa.md",
    "a.md\0.png",
    "a.md%00.png",
    "file:../ws-victim/a.md",
    "/etc/passwd",
    "~/secret.md",
    "link/secret.md",
    "link",
    "circle/a.md",
    ".debug/a.md",
    "brain/.debug/a.md",
    "x" * 300,
    "\ud800.md",
    "",
    " ",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "ws"
    (workspace / "notes").mkdir(parents=True)
    (workspace / "notes" / "a.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (tmp_path / "ws-victim").mkdir()
    (tmp_path / "ws-victim" / "a.md").write_text("secret", encoding="utf-8")
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "circle").symlink_to(workspace / "circle")
    (workspace / "brain" / ".debug").mkdir(parents=True)
    (workspace / "brain" / ".debug" / "a.md").write_text("secret", encoding="utf-8")
    return workspace


@pytest.fixture
def files(workspace: Path) -> Files:
    return Files(workspace, ZoneInfo("Asia/Riyadh"))


@pytest.mark.parametrize("path", OUTSIDE)
async def test_what_leads_out_or_hides_is_refused_in_the_same_words(files: Files, workspace: Path, path: str) -> None:
    before = sorted(workspace.parent.rglob("*"))
    for call in (files.read_file, files.list_files):
        if path.strip() or call == files.read_file:
            with pytest.raises(ToolFailure) as refused:
                await call(CONTEXT, {"path": path})
            assert str(refused.value) == NOT_ALLOWED
    with pytest.raises(ToolFailure) as refused:
        await files.write_file(CONTEXT, {"path": path, "text": "x", "overwrite": True})
    assert str(refused.value) == NOT_ALLOWED
    assert sorted(workspace.parent.rglob("*")) == before


async def test_odd_but_honest_paths_work(files: Files, workspace: Path) -> None:
    for path in ("notes//../notes/a.md", "./notes/a.md", "file:notes/a.md", str(workspace / "notes" / "a.md")):
        assert await files.read_file(CONTEXT, {"path": path}) == "one\ntwo\nthree\n"
    (workspace / "inner.md").symlink_to(workspace / "notes" / "a.md")
    assert await files.read_file(CONTEXT, {"path": "inner.md"}) == "one\ntwo\nthree\n"
    await files.write_file(CONTEXT, {"path": "files/100%25 خطة.md", "text": "خطة"})
    assert (workspace / "files" / "100%25 خطة.md").read_text() == "خطة"


@given(st.lists(st.sampled_from(["..", ".", "notes", "link", "%2e%2e", "%2f", "/", "\\", "a.md", "circle", ""])))
def test_no_path_leaves(parts: list[str]) -> None:
    root = Path("/tmp/nowhere-at-all/ws")
    try:
        place = inside(root, "/".join(parts))
    except ToolFailure:
        return
    assert place == root or root in place.parents


async def test_a_long_file_comes_in_parts(files: Files, workspace: Path) -> None:
    (workspace / "long.md").write_text("".join(f"line {n} {'x' * 90}\n" for n in range(1, 2_001)))
    text = await files.read_file(CONTEXT, {"path": "long.md"})
    assert text.startswith("line 1 ")
    assert len(text) < 41_000
    number = int(text.rpartition("from: ")[2].rstrip("]"))
    more = await files.read_file(CONTEXT, {"path": "long.md", "from": number})
    assert more.startswith(f"line {number} ")
    assert await files.read_file(CONTEXT, {"path": "long.md", "from": 2, "to": 2}) == f"line 2 {'x' * 90}\n"
    assert (await files.read_file(CONTEXT, {"path": "long.md", "from": 1_999, "to": 9_999})).count("\n") == 2
    for first, last in ((2_001, None), (5, 4)):
        with pytest.raises(ToolFailure, match="2,000 lines"):
            await files.read_file(CONTEXT, {"path": "long.md", "from": first, "to": last})
    (workspace / "flat.md").write_text("y" * 100_000)
    assert "(100,000 characters in this line)" in await files.read_file(CONTEXT, {"path": "flat.md"})
    (workspace / "empty.md").write_text("")
    assert await files.read_file(CONTEXT, {"path": "empty.md"}) == "The file is empty."


async def test_what_is_no_text_file_is_said(files: Files, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"\x89PNG\0\0")
    os.mkfifo(workspace / "pipe")
    for path, said in (
        ("a.bin", "not a text file"),
        ("pipe", "is no file"),
        ("notes", "list_files"),
        ("absent.md", "no file absent.md"),
    ):
        with pytest.raises(ToolFailure, match=said):
            await files.read_file(CONTEXT, {"path": path})


async def test_nothing_is_overwritten_that_the_model_does_not_know(files: Files, workspace: Path) -> None:
    path = workspace / "notes" / "a.md"
    with pytest.raises(ToolFailure, match="exists and you have not read it"):
        await files.write_file(CONTEXT, {"path": "notes/a.md", "text": "new"})
    await files.read_file(CONTEXT, {"path": "notes/a.md"})
    with pytest.raises(ToolFailure, match="have not read it"):
        await files.write_file(OTHER, {"path": "notes/a.md", "text": "new"})
    path.write_text("the owner's own line\n")
    with pytest.raises(ToolFailure, match="changed since you read it"):
        await files.write_file(CONTEXT, {"path": "notes/a.md", "text": "new"})
    assert path.read_text() == "the owner's own line\n"
    await files.read_file(CONTEXT, {"path": "notes/a.md"})
    assert await files.write_file(CONTEXT, {"path": "notes/a.md", "text": "new"}) == "Written: notes/a.md (3 bytes)"
    await files.write_file(CONTEXT, {"path": "notes/a.md", "text": "newer"})
    await files.write_file(OTHER, {"path": "notes/a.md", "text": "newest", "overwrite": True})
    assert path.read_text() == "newest"


async def test_a_passage_is_replaced_where_it_stands_once(files: Files, workspace: Path) -> None:
    path = workspace / "notes" / "a.md"
    await files.write_file(CONTEXT, {"path": "notes/a.md", "old": "two\n", "text": ""})
    assert path.read_text() == "one\nthree\n"
    for old, said in (("two", "is not in"), ("e\n", "stands 2 times"), ("", "is not in")):
        with pytest.raises(ToolFailure, match=said):
            await files.write_file(CONTEXT, {"path": "notes/a.md", "old": old, "text": "x", "overwrite": True})
    path.write_bytes(b"one \xff\n")
    with pytest.raises(ToolFailure, match="would be lost"):
        await files.write_file(CONTEXT, {"path": "notes/a.md", "old": "one", "text": "x"})
    assert path.read_bytes() == b"one \xff\n"


async def test_the_read_logs_are_not_written(files: Files, workspace: Path) -> None:
    for path in ("readlog/inapp/a.jsonl", "notes/../readlog/a.jsonl", "."):
        with pytest.raises(ToolFailure, match="is not written to by tools"):
            await files.write_file(CONTEXT, {"path": path, "text": "x"})
    assert not (workspace / "readlog").exists()


async def test_a_folder_is_listed_without_what_is_hidden(files: Files, workspace: Path) -> None:
    os.utime(workspace / "notes" / "a.md", (MONDAY.timestamp(), MONDAY.timestamp()))
    (workspace / "notes" / "deep").mkdir()
    (workspace / "notes" / "deep" / "b.md").write_text("b")
    assert await files.list_files(CONTEXT, {}) == "brain/\nnotes/"
    listed = await files.list_files(CONTEXT, {"path": "notes"})
    assert listed == "notes/a.md 14 bytes 2026-11-30 14:21\nnotes/deep/"
    assert "notes/deep/b.md" in await files.list_files(CONTEXT, {"depth": 3})
    assert await files.list_files(CONTEXT, {"path": "brain"}) == "The folder is empty."
    for path, said in (("absent", "no folder absent"), ("notes/a.md", "is a file")):
        with pytest.raises(ToolFailure, match=said):
            await files.list_files(CONTEXT, {"path": path})


async def test_a_long_listing_is_cut(files: Files, workspace: Path) -> None:
    (workspace / "many").mkdir()
    for number in range(520):
        (workspace / "many" / f"{number:03}").touch()
    lines = (await files.list_files(CONTEXT, {"path": "many"})).splitlines()
    assert len(lines) == 501
    assert lines[-1].startswith("... more than 500")


async def test_the_mask_of_a_secret_never_takes_the_place_of_the_secret(tmp_path: Path) -> None:
    tools = Files(tmp_path, ZoneInfo("UTC"))
    file = tmp_path / "notes.md"
    file.write_text("- wifi password: hunter2\n- tea\n", encoding="utf-8")
    await tools.read_file(CONTEXT, {"path": "notes.md"})
    masked = {"path": "notes.md", "text": "- wifi password: [redacted: password]\n- tea and dates\n"}
    for more in ({}, {"overwrite": True}):
        with pytest.raises(ToolFailure, match="masks nothing"):
            await tools.write_file(CONTEXT, {**masked, **more})
    await tools.write_file(CONTEXT, {"path": "notes.md", "old": "- tea", "text": "- tea and dates"})
    assert file.read_text(encoding="utf-8") == "- wifi password: hunter2\n- tea and dates\n"
    await tools.write_file(CONTEXT, {**masked, "path": "new.md"})
