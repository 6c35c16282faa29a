"""The Retain grammar: what is a fact, what is only text, and on which line."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hippocampus.facts import Day, day_of, mentions, parse_bullet, parse_day, write_bullet

DAY = date(2026, 11, 27)


def parsed(text: str) -> Day:
    return parse_day("brain/hippocampus/episodes/2026-11-27.md", DAY, text)


@pytest.mark.parametrize(
    ("bullet", "letter", "entities", "confidence", "text"),
    [
        ("- W @Peter: In Marrakech (Nov 27–Dec 1, 2025).", "W", ("Peter",), None, "In Marrakech (Nov 27–Dec 1, 2025)."),
        ("- B @warelay: I fixed it.", "B", ("warelay",), None, "I fixed it."),
        ("- O(c=0.95) @Peter: Prefers concise replies.", "O", ("Peter",), 0.95, "Prefers concise replies."),
        ("* O @The-Castle: Is cold with @Ann.", "O", ("The-Castle", "Ann"), None, "Is cold with @Ann."),
        ("+ S: A quiet day.", "S", (), None, "A quiet day."),
        ("- W @سارة @علي: انتقلا إلى الرياض", "W", ("سارة", "علي"), None, "انتقلا إلى الرياض"),
        ("- O(c=٠٫٩) @القلعة: باردة", "O", ("القلعة",), 0.9, "باردة"),
        ("- W: mail a@b.example about it", "W", (), None, "mail a@b.example about it"),
        ("  - W :  two   blanks ", "W", (), None, "two blanks"),
    ],
)
def test_a_bullet_is_read(
    bullet: str, letter: str, entities: tuple[str, ...], confidence: float | None, text: str
) -> None:
    assert parse_bullet(bullet) == (letter, text, entities, confidence)


@pytest.mark.parametrize(
    "bullet",
    ["- nonsense", "- X: what", "- W no colon", "- W:", "- O(c=1.2): x", "- O(c=-0.1): x", "- O(c=much): x",
     "- W(c=0.5): x", "- w: small letter", "- : x", f"- W: {'x' * 3000}"],
)  # fmt: skip
def test_a_malformed_bullet_is_text_with_a_reason(bullet: str) -> None:
    reason = parse_bullet(bullet)
    assert isinstance(reason, str)
    assert reason
    day = parsed(f"# d\n\n## Retain\n{bullet}\n- W: good\n")
    assert [(fault.line, fault.reason) for fault in day.faults] == [(4, reason)]
    assert [fact.text for fact in day.facts] == ["good"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_and_only_the_retain_sections_count(end: str) -> None:
    lines = [
        "\ufeff# 2026-11-27", "", "## 10:00 [telegram] - hi", "- W: not here", "", "## Retain", "", "- W: first",
        "  goes on here", "", "prose stays prose", "### Sub", "- B: second", "```", "- W: code", "```",
        "<!-- - W: hidden -->", "## Other", "- W: nor here", "## retain ##", "- S: third",
    ]  # fmt: skip
    day = parsed(end.join(lines))
    assert [(fact.line, fact.text) for fact in day.facts] == [(8, "first goes on here"), (13, "second"), (21, "third")]
    assert not day.faults
    assert day.facts[0].ref == "brain/hippocampus/episodes/2026-11-27.md#L8"


def test_a_name_is_no_part_of_an_address() -> None:
    assert mentions("ask @Ann, @Bob-Lee's and @Ann; not x@y.z, @, user@host") == ("Ann", "Bob-Lee's")


def test_only_day_files_have_a_day() -> None:
    assert day_of("2026-11-27.md") == DAY
    assert all(day_of(name) is None for name in ("2026-13-01.md", "notes.md", "2026-11-27.md.bak", "x2026-11-27.md"))


_NAMES = st.from_regex(r"[A-Za-zء-ي][A-Za-z0-9ء-ي]{0,8}(-[A-Za-z0-9]{1,6})?", fullmatch=True)


@given(
    st.sampled_from("WBSO"),
    st.text(min_size=1).map(lambda text: " ".join(text.replace("\0", "").split())).filter(bool),
    st.lists(_NAMES, max_size=3, unique=True),
    st.none() | st.integers(0, 100).map(lambda n: n / 100),
)
def test_what_is_written_is_read_again(letter: str, text: str, names: list[str], confidence: float | None) -> None:
    confidence = confidence if letter == "O" else None
    bullet = write_bullet(letter, text, tuple(names), confidence)
    found = parse_bullet(bullet)
    assert not isinstance(found, str)
    assert found[0] == letter
    assert found[1] == " ".join(text.split())
    assert set(names) <= set(found[2])
    assert found[3] == confidence


@given(st.text())
def test_any_text_is_read_without_failing(text: str) -> None:
    day = parsed(f"## Retain\n{text}")
    assert all(1 <= fact.line <= len(day.lines) for fact in day.facts)
