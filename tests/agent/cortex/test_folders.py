"""Folders beside the workspace: found, opened by `folders/<name>/...`, never left."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cortex.roots import Roots
from agent.types import ToolFailure
from tests.fakes.library import OWNER, open_library


def written(folder: Path, *files: tuple[str, str]) -> Path:
    for name, text in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


async def test_markdown_and_text_of_a_folder_are_found_and_opened(tmp_path: Path) -> None:
    notes = written(
        tmp_path / "My Notes",
        ("a.md", "# Sea\na walrus swims\n"),
        ("deep/b.TXT", "# no heading\nanother walrus dives deep\n"),
        ("c.csv", "walrus"),
        ("files/d.md", "walrus statistics of the year"),
        (".obsidian/e.md", "walrus"),
        ("config.toml", "walrus"),
    )
    async with open_library(tmp_path / "home", folders=[notes]) as library:
        await library.cortex.update_files()
        hits = (await library.cortex.search(OWNER, "walrus")).hits
        assert sorted((hit.ref, hit.source) for hit in hits) == [
            ("file:folders/My Notes/a.md#L2", "doc"),
            ("file:folders/My Notes/deep/b.TXT#L1-L2", "doc"),
            ("file:folders/My Notes/files/d.md#L1", "doc"),
        ]
        get = library.cortex.get
        assert await get(OWNER, "file:folders/My Notes/a.md#L2", 1) == "a walrus swims"
        assert await get(OWNER, "folders/My Notes/a.md#Sea", 1) == "# Sea\na walrus swims"
        for ref in (
            "folders/My Notes/c.csv",
            "folders/My Notes/.obsidian/e.md",
            "folders/My Notes/config.toml",
            "folders/My Notes/../home/hudhud.db",
            "folders/My Notes/../../etc/passwd",
            "folders/My Notes",
            "folders/other/a.md",
            str(notes / "a.md"),
        ):
            with pytest.raises(ToolFailure):
                await get(OWNER, ref, 1)


async def test_links_that_leave_a_folder_are_refused_and_listed(tmp_path: Path) -> None:
    kb = written(tmp_path / "kb", ("a.md", "walrus"))
    (kb / "inside.md").symlink_to("a.md")
    (kb / "home.md").symlink_to(tmp_path / "home/workspace/memory.md")
    (kb / "etc").symlink_to("/etc")
    async with open_library(tmp_path / "home", folders=[kb]) as library:
        library.file("memory.md", "penguin")
        (library.workspace / "kb").symlink_to(kb)
        await library.cortex.update_files()
        assert await library.find("walrus") == ["file:folders/kb/a.md#L1"]
        assert await library.find("penguin") == ["file:memory.md#L1"]
        leaves = "it is a link that leaves its folder"
        assert {item.path: item.reason for item in await library.cortex.skipped()} == {
            "folders/kb/etc": leaves,
            "folders/kb/home.md": leaves,
            "kb": "it is a link that leaves the workspace",
        }
        assert await library.cortex.get(OWNER, "folders/kb/inside.md", 1) == "walrus"
        for ref in ("folders/kb/home.md", "folders/kb/etc/passwd", "kb/a.md"):
            with pytest.raises(ToolFailure):
                await library.cortex.get(OWNER, ref, 1)


async def test_an_absent_folder_is_no_fault_and_its_files_go_with_it(tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    async with open_library(tmp_path / "home", folders=[kb]) as library:
        assert await library.cortex.update_files() == 0
        assert await library.cortex.skipped() == ()
        written(kb, ("a.md", "walrus"))
        assert await library.cortex.update_files() == 1
        kb.rename(tmp_path / "away")
        assert await library.cortex.update_files() == 1
        assert await library.find("walrus") == []


async def test_a_folder_around_the_home_does_not_show_it(tmp_path: Path) -> None:
    written(tmp_path, ("a.md", "a walrus"), ("home/whatsapp/auth/b.md", "walrus"), ("inner/c.md", "inner walrus"))
    async with open_library(tmp_path / "home", folders=[tmp_path, tmp_path / "inner"]) as library:
        library.file("memory.md", "walrus to remember")
        await library.cortex.update_files()
        assert set(await library.find("walrus")) == {
            f"file:folders/{tmp_path.name}/a.md#L1",
            "file:folders/inner/c.md#L1",
            "file:memory.md#L1",
        }


async def test_a_folder_of_the_workspace_is_no_folder_of_its_own(tmp_path: Path) -> None:
    async with open_library(tmp_path, folders=[tmp_path / "workspace/notes"]) as library:
        library.file("notes/a.md", "walrus")
        await library.cortex.update_files()
        assert await library.find("walrus") == ["file:notes/a.md#L1"]
        assert [item.reason for item in await library.cortex.skipped()] == [
            "it lies in the workspace, which is indexed already"
        ]


async def test_a_workspace_folder_of_that_name_gives_way_to_a_setting_only(tmp_path: Path) -> None:
    kb = written(tmp_path / "kb", ("a.md", "walrus"))
    async with open_library(tmp_path / "home", folders=[kb]) as library:
        library.file("folders/kb/a.md", "penguin")
        library.file("folders/mine/a.md", "ostrich")
        await library.cortex.update_files()
        assert await library.find("walrus") == ["file:folders/kb/a.md#L1"]
        assert await library.find("penguin") == []
        assert await library.find("ostrich") == ["file:folders/mine/a.md#L1"]
        assert [(item.path, item.reason) for item in await library.cortex.skipped()] == [
            ("folders/kb", "a folder of memory.folders has that name")
        ]


def test_names_stay_when_a_folder_is_added_at_the_end(tmp_path: Path) -> None:
    places = [tmp_path / "a/kb", tmp_path / "b/kb", tmp_path / "a/kb", tmp_path / "c#d", Path("/")]
    names = [list(Roots.of(tmp_path / "w", places[:count]).folders) for count in (1, 2, 5)]
    assert names == [["kb"], ["kb", "kb-2"], ["kb", "kb-2", "c_d", "root"]]
