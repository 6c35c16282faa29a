"""An artifact says which conversation made or brought it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cortex import index, origins
from tests.fakes.library import OWNER, Library, open_library


async def text(library: Library, query: str) -> str:
    hits = (await library.cortex.search(OWNER, query, sources="artifact")).hits
    return " ".join(hits[0].snippet.split()) if hits else ""


async def test_what_a_tool_wrote_names_the_call_whichever_is_indexed_first(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("files/walrus.txt", "x")
        await library.cortex.update_files()
        assert "conversation:" not in await text(library, "walrus")
        await library.call("write_file", '{"path": "files/walrus.txt", "text": "x"}', "Written", n=3)
        assert (await text(library, "walrus")).endswith("in files) from conversation:c1#3.1 (write_file)")
        await library.call("write_file", '{"path": "./files/trip/my penguin.txt", "text": "x"}', "Written", n=4)
        library.file("files/trip/my penguin.txt", "x")
        await library.cortex.update_files()
        assert (await text(library, "penguin")).endswith("from conversation:c1#4.1 (write_file)")


async def test_what_came_with_a_message_names_the_message(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("uploads/walrus.jpg", "x")
        await library.cortex.update_files()
        await library.say("look", n=2, attached=("uploads/walrus.jpg",))
        assert (await text(library, "walrus")).endswith("from conversation:c1#2")
        await library.say("look", n=2)
        assert "conversation:" not in await text(library, "walrus")


async def test_who_made_it_comes_before_who_named_it_and_the_first_before_the_others(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("files/walrus.csv", "x")
        await library.cortex.update_files()
        await library.call("run_command", '{"command": "wc -l files/walrus.csv"}', "", n=1)
        assert (await text(library, "walrus")).endswith("see conversation:c1#1.1 (run_command)")
        await library.call("write_file", '{"path": "files/walrus.csv"}', "", conversation="c3", n=7)
        await library.call("write_file", '{"path": "files/walrus.csv"}', "", conversation="c2", n=8)
        assert (await text(library, "walrus")).endswith("from conversation:c2#8.1 (write_file)")


async def test_a_removed_conversation_is_no_longer_named(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("files/walrus.csv", "x")
        await library.call("write_file", '{"path": "files/walrus.csv"}', "", n=1)
        await library.call("run_command", '{"command": "cat files/walrus.csv"}', "", n=2)
        await library.cortex.update_files()
        await library.write(lambda conn: index.remove_refs(conn, ["conversation:c1#1"]))
        assert (await text(library, "walrus")).endswith("see conversation:c1#2.1 (run_command)")
        await library.write(lambda conn: index.remove_refs(conn, ["conversation:c1#"]))
        assert "conversation:" not in await text(library, "walrus")
        assert library.conn.execute("SELECT count(*) FROM idx.origin").fetchone()[0] == 0


async def test_origins_added_in_one_go_are_told_afterwards(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("files/walrus.csv", "x")
        await library.cortex.update_files()
        found = origins.of_call("conversation:c1", 4, 2, "write_file", '{"path": "files/walrus.csv"}', "")
        await library.write(lambda conn: origins.put(conn, [*found, *origins.of_message("conversation:c9", 1, ["x"])]))
        await library.write(index.retell_artifacts)
        assert (await text(library, "walrus")).endswith("from conversation:c1#4.2 (write_file)")


async def test_a_changed_artifact_keeps_its_origin(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("files/walrus.csv", "x")
        await library.call("write_file", '{"path": "files/walrus.csv"}', "", n=1)
        await library.cortex.update_files()
        library.file("files/walrus.csv", "longer")
        await library.cortex.update_files()
        assert "6 bytes" in await text(library, "walrus")
        assert (await text(library, "walrus")).endswith("from conversation:c1#1.1 (write_file)")


@pytest.mark.parametrize(
    ("name", "args", "output", "paths"),
    [
        ("write_file", {"path": "files/a b.pdf"}, "", ["files/a b.pdf"]),
        ("write_file", {"path": "file:files/a.pdf"}, "", ["files/a.pdf"]),
        ("write_file", {"path": "files/../memory.md"}, "", []),
        ("write_file", {"path": "files/x/../a.pdf"}, "", ["files/a.pdf"]),
        ("write_file", {"path": "notes/a.md", "text": "see files/b.pdf."}, "", ["files/b.pdf"]),
        ("run_command", {"command": "python plot.py > files/out.png && ls"}, "", ["files/out.png"]),
        ("run_command", {"command": "x"}, "saved to /home/me/.hudhud/workspace/screenshots/s 1.png", ["screenshots/s"]),
        (
            "run_command",
            {"command": "x"},
            "saved 'speech/hello.ogg', (uploads/a.jpg)",
            ["speech/hello.ogg", "uploads/a.jpg"],
        ),
        ("take_picture", {"n": [{"to": "screenshots/1.png"}]}, "", ["screenshots/1.png"]),
        ("send_file", {"path": "files/a.pdf", "to": "telegram:7"}, "sent", ["files/a.pdf"]),
        ("run_command", {"command": "ls myfiles/a /etc/files/b ../files/c"}, "", []),
        ("read_file", {"path": "files/a.pdf"}, "", []),
        ("list_files", {"path": "files"}, "files/a.pdf 3 bytes", []),
        ("memory_search", {"query": "files/a.pdf"}, "files/a.pdf", []),
    ],
)
async def test_the_paths_a_call_made_or_named(
    tmp_path: Path, name: str, args: object, output: str, paths: list[str]
) -> None:
    async with open_library(tmp_path) as library:
        await library.call(name, json.dumps(args), output)
        found = library.conn.execute("SELECT path FROM idx.origin ORDER BY path").fetchall()
        assert [row[0] for row in found] == sorted(paths)


async def test_a_call_that_lists_everything_made_little_of_it(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.call("run_command", '{"command": "find"}', "\n".join(f"files/{n}" for n in range(5_000)))
        kept = library.conn.execute("SELECT count(*) FROM idx.origin").fetchone()[0]
        assert kept == origins.PATHS_OF_CALL_MAX


async def test_arguments_that_are_no_json_are_read_as_text(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.call("odd", "to files/a.pdf", "")
        await library.call("odder", "[" * 100_000 + "files/b.pdf", "", n=2)
        rows = library.conn.execute("SELECT path FROM idx.origin ORDER BY path").fetchall()
        assert [row[0] for row in rows] == ["files/a.pdf", "files/b.pdf"]
