"""What is left out of the index, and where it says so: links, names, pipes, what is large or cannot be read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent.cortex.sources import FILE_BYTES_MAX
from agent.types import ToolFailure
from tests.fakes.library import OWNER, Library, open_library


async def skipped(library: Library) -> dict[str, str]:
    await library.cortex.update_files()
    return {item.path: item.reason for item in await library.cortex.skipped()}


async def test_a_link_inside_is_indexed_once_and_one_that_leaves_is_refused_and_listed(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        (tmp_path / "outside.md").write_text("walrus", encoding="utf-8")
        library.file("sub/real.md", "walrus")
        (library.workspace / "MEMORY.md").symlink_to("sub/real.md")
        (library.workspace / "again").symlink_to("sub")
        (library.workspace / "outside.md").symlink_to(tmp_path / "outside.md")
        (library.workspace / "up").symlink_to("..")
        (library.workspace / "files").mkdir()
        (library.workspace / "files/passwd").symlink_to("/etc/passwd")
        leaves = "it is a link that leaves the workspace"
        assert await skipped(library) == {"files/passwd": leaves, "outside.md": leaves, "up": leaves}
        assert await library.find("walrus") == ["file:sub/real.md#L1"]
        assert await library.find("passwd") == []
        for ref in ("MEMORY.md", "again/real.md", "file:MEMORY.md#L1"):
            assert await library.cortex.get(OWNER, ref, 1) == "walrus"
        for ref in ("outside.md", "up/outside.md", "files/passwd"):
            with pytest.raises(ToolFailure):
                await library.cortex.get(OWNER, ref, 1)


async def test_each_odd_link_has_its_reason(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file(".secret/key.md", "walrus")
        library.file("data.csv", "walrus")
        for name, target in (
            ("nowhere.md", "missing.md"),
            ("circle.md", "circle.md"),
            ("one.md", "two.md"),
            ("two.md", "one.md"),
            ("private.md", ".secret/key.md"),
            ("table.md", "data.csv"),
            ("here", "."),
            ("program", "/bin/sh"),
        ):
            (library.workspace / name).symlink_to(target)
        circle = "it is a link that leads in a circle"
        assert await skipped(library) == {
            "nowhere.md": "it is a link that leads nowhere",
            "circle.md": circle,
            "one.md": circle,
            "two.md": circle,
            "private.md": "it is a link to what is private",
            "table.md": "it is a link to data.csv, which is not indexed under that name",
        }
        assert await library.find("walrus") == []


async def test_pipes_and_sockets_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_library(tmp_path) as library:
        os.mkfifo(library.workspace / "pipe.md")
        library.file("files/a.txt", "x")
        os.mkfifo(library.workspace / "files/pipe")
        with socket.socket(socket.AF_UNIX) as bound:
            monkeypatch.chdir(library.workspace)  # a socket's path must be short
            bound.bind("socket.md")
            reason = "it is a pipe, a socket or a device"
            assert await skipped(library) == {name: reason for name in ("pipe.md", "files/pipe", "socket.md")}
        await library.cortex.file_changed(library.workspace / "pipe.md")
        assert await library.find("pipe") == []
        with pytest.raises(ToolFailure, match="no file"):
            await library.cortex.get(OWNER, "pipe.md", 1)


async def test_a_file_that_became_a_pipe_or_a_folder_is_gone(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for name in ("a.md", "b.md"):
            library.file(name, "walrus")
        await library.cortex.update_files()
        (library.workspace / "a.md").unlink()
        os.mkfifo(library.workspace / "a.md")
        (library.workspace / "b.md").unlink()
        library.file("b.md/c.md", "penguin")
        await library.cortex.update_files()
        assert await library.find("walrus") == []
        assert await library.find("penguin") == ["file:b.md/c.md#L1"]


async def test_names_no_reference_could_hold(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for name in (b"caf\xe9.md", b"two\nlines.md", b"f\xff/in.md"):
            library.file(os.fsdecode(name), "walrus")
        assert await skipped(library) == {
            "caf\\xe9.md": "its name is not UTF-8",
            "two\\nlines.md": "its name has a line break",
            "f\\xff": "its name is not UTF-8",
        }
        assert await library.find("walrus") == []


async def test_of_a_large_file_the_beginning_is_found_and_a_binary_one_is_named(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        large = library.file("large.md", "# walrus\nfirst line\n")
        with large.open("ab") as file:
            file.truncate(FILE_BYTES_MAX + 1)
        text = library.file("text.md", "# penguin\nfirst line\n")
        with text.open("a", encoding="utf-8") as file:
            file.write(("x" * 99 + "\n") * (FILE_BYTES_MAX // 100 + 1))
        (library.workspace / "picture.md").write_bytes(b"\x89PNG\0\0")
        expected = {
            "large.md": "it is not a text file",
            "text.md": "only its first 8 MB are indexed",
            "picture.md": "it is not a text file",
        }
        assert await skipped(library) == expected
        assert await library.find("penguin")
        assert await library.cortex.update_files() == 0
        assert await skipped(library) == expected
    async with open_library(tmp_path) as again:
        assert {item.path: item.reason for item in await again.cortex.skipped()} == expected


async def test_a_deep_tree_is_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_library(tmp_path) as library:
        deep = "d/" * 1_200
        monkeypatch.chdir(library.workspace)
        for _ in range(1_200):
            os.mkdir("d")
            os.chdir("d")
        descriptor = os.open("deep.md", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"walrus")
        os.close(descriptor)
        try:
            await library.cortex.update_files()
            assert await library.find("walrus") == [f"file:{deep}deep.md#L1"]
        finally:
            os.unlink("deep.md")  # whoever tidies up after the tests goes less deep
            for _ in range(1_200):
                os.chdir("..")
                os.rmdir("d")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_what_cannot_be_read_is_named_and_tried_again(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        file, folder = library.file("closed.md", "walrus"), library.file("shut/a.md", "walrus").parent
        file.chmod(0)
        folder.chmod(0)
        reason = "it cannot be read: Permission denied"
        assert await skipped(library) == {"closed.md": reason, "shut/": reason}
        file.chmod(0o600)
        folder.chmod(0o700)
        assert await skipped(library) == {}
        assert sorted(await library.find("walrus")) == ["file:closed.md#L1", "file:shut/a.md#L1"]
