"""The derived index as the writer keeps it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent.cortex import index, lookup
from agent.cortex.refs import Ref, parse_ref
from tests.fakes.library import OWNER, START, open_library


async def test_a_message_that_changes_is_found_by_its_new_words_only(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("the old harbour", n=1)
        assert await library.say("a new lighthouse", n=1) == ref
        assert await library.find("harbour") == []
        assert await library.find("lighthouse") == [ref]
        assert (await library.cortex.coverage()).sources[0].records == 1


async def test_a_search_bears_that_its_hits_are_replaced_meanwhile(tmp_path: Path, monkeypatch: Any) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("the old harbour " * 1_000, n=1)
        await library.say("something else", n=2)
        original = lookup.without_doubles

        def late(*arguments: Any) -> Any:
            asyncio.run(library.say("the new harbour " * 1_000, n=1))
            return original(*arguments)

        monkeypatch.setattr(lookup, "without_doubles", late)
        hits = await library.cortex.candidates(OWNER, "harbour", 5)
        assert [hit.ref for hit in hits] == [ref]


async def test_what_is_rolled_back_is_not_in_the_index(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.conn.execute("BEGIN")
        row = index.IndexedMessage("c1", 1, "user", "vanishing", "S", "8", "telegram:1", "telegram", "1", START)
        index.index_message(library.conn, row)
        library.conn.execute("ROLLBACK")
        assert await library.find("vanishing") == []


async def test_removed_references_are_gone_and_others_stay(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for n in range(1, 12):
            await library.say(f"pebble number {n} of the shore", n=n)
        await library.call("write_file", "{}", "pebble in a file", n=1)
        await library.write(lambda conn: index.remove_refs(conn, ["conversation:c1#1", "no reference at all"]))
        found = await library.find("pebble", limit=50)
        assert "conversation:c1#1" not in found
        assert "conversation:c1#11" in found
        await library.write(lambda conn: index.remove_refs(conn, ["conversation:c1#11.1", "conversation:c1#"]))
        assert await library.find("pebble") == []
        assert (await library.cortex.coverage()).conversations == 0
        library.conn.execute("INSERT INTO idx.words (words) VALUES ('integrity-check')")


async def test_removing_one_call_leaves_its_message(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        said = await library.say("walrus message", n=1)
        called = await library.call("write_file", "{}", "walrus output", n=1)
        assert set(await library.find("walrus")) == {said, called}
        await library.write(lambda conn: index.remove_refs(conn, [called]))
        assert await library.find("walrus") == [said]


async def test_a_search_call_is_not_found_by_what_it_asked_or_got(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.call("memory_search", '{"query": "pelican"}', "[conversation:c0#1] a pelican")
        assert await library.find("pelican") == []


async def test_marks_are_kept(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        conn = library.conn
        assert (index.watermark(conn), index.truth_id(conn), index.build_target(conn)) == (0, None, None)
        index.set_watermark(conn, 41)
        index.set_truth_id(conn, "abc")
        index.set_build_target(conn, 50)
        assert (index.watermark(conn), index.truth_id(conn), index.build_target(conn)) == (41, "abc", 50)


def test_an_index_of_another_version_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.db"
    row = index.IndexedMessage("c1", 1, "user", "kept", "S", "8", "telegram:1", "telegram", "1", START)

    def records() -> int:
        conn = sqlite3.connect(tmp_path / "hudhud.db")
        try:
            index.attach(conn, path)
            found = conn.execute("SELECT count(*) FROM idx.record").fetchone()[0]
            if found == 0:
                index.index_message(conn, row)
                conn.commit()
        finally:
            conn.close()
        return found

    assert records() == 0
    assert records() == 1
    with monkeypatch.context() as patched:
        patched.setattr(index, "SCHEMA_VERSION", index.SCHEMA_VERSION + 1)
        with pytest.raises(index.OtherVersion):
            records()
    assert records() == 1


async def test_lone_surrogates_and_nul_can_be_indexed(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("half \ud800 a\x00b character", sender="\udfff Sana")
        assert await library.find("character") == [ref]
        assert await library.find("a\x00b") == [ref]
        assert "half \ufffd a" in await library.cortex.get(OWNER, ref, 1)


async def test_a_very_long_message_is_found_by_its_last_word(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("lorem ipsum " * 80_000 + "xylophone")
        hit = (await library.cortex.search(OWNER, "xylophone")).hits[0]
        assert hit.ref == ref
        assert len(hit.snippet) < 400


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("conversation:a#b#3", Ref("conversation", id="a#b", n=3)),
        ("conversation:x#3.1", Ref("conversation", id="x", n=3, part=1)),
        ("conversation:x#", Ref("conversation", id="x")),
        ("`conversation:x`", Ref("conversation", id="x")),
        ("conversation:x#three", None),
        ("conversation:#3", None),
        ("task:t#detail2", Ref("task", id="t", detail=2)),
        ("task:t#2", None),
        ("memory.md", Ref("file", path="memory.md")),
        ("file:memory.md#L17", Ref("file", path="memory.md", lines=(17, 17))),
        ("file:memory.md#L10-L24", Ref("file", path="memory.md", lines=(10, 24))),
        ("file:memory.md#L10-24", Ref("file", path="memory.md", lines=(10, 24))),
        ("file:a b.md#What next?", Ref("file", path="a b.md", heading="What next?")),
        ("", None),
        ("file:", None),
        ("a\nb", None),
    ],
)
def test_references_are_read(text: str, ref: Ref | None) -> None:
    assert parse_ref(text) == ref
