"""Folding holds for every text, not for chosen ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.cortex import index, lookup
from agent.cortex.query import parse_query
from agent.cortex.refs import parse_ref
from agent.cortex.sentences import sentences
from agent.cortex.snippets import snippet
from agent.cortex.sources import markdown_sections
from agent.cortex.text import analyse, clean, fold, places, sameness_key, tokens_of
from tests.fakes.library import START

ANY = st.text(st.characters(), max_size=80)
"""All code points, lone surrogates and NUL among them."""
WORDY = st.lists(
    st.one_of(
        st.text(st.sampled_from("ءآأؤإئابتةثجحخدذرزسشصضطظعغفقكلمنهوىيـَُِّْ٠١٢٣"), min_size=1, max_size=8),
        st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCéüß'’-_./0123"), min_size=1, max_size=10),
        st.text(st.sampled_from("周末天气予定カレンダー회의시간สวัสดีｶﾞ"), min_size=1, max_size=6),
        st.text(st.sampled_from("שָׁלוֹםहिन्दी🎉👍🏽🇸🇦👨‍👩‍👧"), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=8,
).map(" ".join)
TEXTS = st.one_of(ANY, WORDY)


@given(TEXTS)
def test_folding_what_is_folded_changes_nothing(text: str) -> None:
    for token in tokens_of(clean(text)):
        assert tokens_of(token) == [token]


@given(TEXTS)
def test_blanks_around_and_case_of_ascii_do_not_count(text: str) -> None:
    cleaned = clean(text)
    swapped = "".join(c.swapcase() if c.isascii() else c for c in cleaned)
    assert tokens_of(f"  {swapped}\n") == tokens_of(cleaned)
    assert sameness_key(f"  {swapped}\n") == sameness_key(cleaned)


@given(TEXTS)
def test_tokens_are_apart_by_blanks_alone_and_hold_nothing_the_database_would_cut_at(text: str) -> None:
    for part in fold(clean(text)):
        for token in part.split(" "):
            assert "\0" not in token
            assert not any(character.isascii() and not character.isalnum() for character in token)
            token.encode()


@given(TEXTS)
def test_places_lie_in_the_text_in_order_and_name_its_tokens(text: str) -> None:
    cleaned = clean(text)
    ends, named = 0, set[str]()
    for start, end, tokens in places(cleaned):
        assert 0 <= start < end <= len(cleaned)
        assert start >= ends - 1
        ends = end
        named.update(tokens)
    assert named >= set(tokens_of(cleaned))


@given(TEXTS)
def test_any_text_becomes_a_query(text: str) -> None:
    query = parse_query(text)
    for word in query.words:
        assert word.forms
        assert set(word.asked) <= set(word.forms)
        assert all('"' not in form and form.strip() == form and form for form in word.forms)


@given(TEXTS)
def test_any_text_is_a_reference_or_none(text: str) -> None:
    parse_ref(text)
    parse_ref(f"file:{text}")
    parse_ref(f"conversation:{text}")


@given(st.text(max_size=400), st.integers(20, 120))
def test_a_snippet_is_short_and_of_the_text(text: str, chars: int) -> None:
    tokens = tokens_of(text)
    cut = snippet(text, dict.fromkeys(tokens[-2:], 1.0), chars)
    assert len(cut) <= chars
    assert cut.strip("…").strip() in text


@given(st.lists(st.sampled_from(["# One", "## Two", "text", "", "```", "- bullet", "x" * 700]), max_size=30))
def test_sections_lose_no_line_and_keep_their_numbers(lines: list[str]) -> None:
    for section in markdown_sections("\n".join(lines)):
        if section.text:
            assert section.text == "\n".join(lines[section.first - 1 : section.last])
    kept = [line for section in markdown_sections("\n".join(lines)) for line in section.text.splitlines() if line]
    assert [line for line in lines if line and line in {"text", "- bullet", "x" * 700}] == [
        line for line in kept if line in {"text", "- bullet", "x" * 700}
    ]


@given(word=st.from_regex(r"[A-Za-z][a-z]{0,70}|[A-Z]{1,70}", fullmatch=True))
def test_plain_words_fold_the_same_by_the_quick_way(word: str) -> None:
    text, extra = fold(f"{word}")
    piece = analyse(word)
    forms = [form for each in piece.words for form in each.forms]
    assert text.split() == [each.token for each in piece.words]
    assert extra.split() == list(dict.fromkeys([*forms, *piece.wholes, *piece.singles]))


@dataclass(frozen=True, slots=True)
class _Both:
    """The two connections of an index."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Both]:
    path: Path = tmp_path_factory.mktemp("index") / "index.db"
    writer = sqlite3.connect(":memory:", isolation_level=None)
    index.attach(writer, path)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute(sentences("reads.sql")["create-terms"])
    yield _Both(writer, reader)
    writer.close()
    reader.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, query=TEXTS)
def test_a_saved_text_is_found_by_each_of_its_words_and_no_query_fails(conn: _Both, text: str, query: str) -> None:
    row = index.IndexedMessage("c", 1, "user", text, "S", "s", "k", "telegram", "1", START)
    conn.writer.execute("BEGIN")
    index.index_message(conn.writer, row)
    conn.writer.execute("COMMIT")
    for word in clean(text).split():
        if parse_query(word).words:
            assert lookup.search(conn.reader, word, lookup.Filters(), 5), word
    lookup.search(conn.reader, query, lookup.Filters(), 5)
    lookup.candidates(conn.reader, query, None, 5)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_after_any_changes_and_removal_nothing_is_left(conn: _Both, texts: list[str]) -> None:
    conn.writer.execute("BEGIN")
    index.remove_refs(conn.writer, ["conversation:c#"])
    for at, text in enumerate(texts):
        row = index.IndexedMessage("c", at % 2 + 1, "user", text, text[:5], "s", "k", "telegram", "1", START)
        index.index_message(conn.writer, row)
    conn.writer.execute("INSERT INTO idx.words (words) VALUES ('integrity-check')")
    index.remove_refs(conn.writer, ["conversation:c#"])
    conn.writer.execute("COMMIT")
    left = conn.writer.execute("SELECT (SELECT count(*) FROM idx.record) + (SELECT count(*) FROM idx.conversation)")
    assert left.fetchone()[0] == 0
    for text in texts:
        assert lookup.search(conn.reader, text, lookup.Filters(), 5) == []
