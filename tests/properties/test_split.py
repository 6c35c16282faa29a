"""For any text: parts fit, nothing is lost, nothing is torn."""

from __future__ import annotations

import re

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from channels.telegram.format import render
from channels.text import Unit, clean, length, split
from tests.fakes.bot_api import check_text

PIECES = st.sampled_from(
    [
        "word ",
        "\n",
        "\n\n",
        "كَلِمَة ",
        "،",
        "句子。",
        "한국어 ",
        "\U0001f680",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1f8\U0001f1e6",
        "e\u0301",
        "x" * 30,
        ". ",
        "\t",
        "\r\n",
        "\u0600",
        "\ud83d",
    ]
)
MARKS = st.sampled_from(
    [
        "**", "*", "_", "~~", "`", "||", "$", "<", "<b>", "</b>", "<!-- x -->", "[^1]", "[a](https://e.org/a_b)",
        "[n]: x\n", "# ", "- ", "1. ", "> ", "| a | b |\n|---|---|\n| 1 | 2 |\n", "---\n", "https://e.org/_a_/$b ",
        "\\", "&amp;", "![i](http://e.org)", "\n```\n", "\n```py\ncode\n```\n", "    indented\n", "2*3*4 ",
    ]
)  # fmt: skip
UNITS: st.SearchStrategy[Unit] = st.sampled_from(["utf16", "chars"])
plain_texts = st.lists(PIECES | st.text(max_size=20), max_size=60).map("".join)
markdown_texts = st.lists(PIECES | MARKS | st.text(max_size=20), max_size=60).map("".join)


def is_fence(line: str) -> bool:
    return re.match(r"[ \t]*(```|~~~)", line) is not None


@given(plain_texts.filter(lambda text: "```" not in text and "~~~" not in text), st.integers(16, 200), UNITS)
def test_parts_of_plain_text_joined_are_the_text(text: str, limit: int, unit: Unit) -> None:
    parts = split(text, limit, unit)
    assert "".join(parts) == text
    assert all(0 < length(part, unit) <= limit for part in parts)


@given(plain_texts.map(clean), st.integers(40, 200), UNITS)
def test_no_cut_falls_inside_a_grapheme(text: str, limit: int, unit: Unit) -> None:
    borders = {0}
    for cluster in regex.finditer(r"\X", text):
        # A cluster larger than the limit may be cut.
        inside = range(cluster.start(), cluster.end()) if length(cluster[0], unit) > limit else ()
        borders |= {*inside, cluster.end()}
    position = 0
    if not any(map(is_fence, text.splitlines())):
        for part in split(text, limit, unit):
            position += len(part)
            assert position in borders


@given(
    st.lists(st.text("ab c`", max_size=12), max_size=40), st.sampled_from(["```", "````", "~~~"]), st.integers(48, 90)
)
def test_code_is_whole_and_in_code_in_every_part(code: list[str], marker: str, limit: int) -> None:
    lines = [line for line in code if not is_fence(line)]
    parts = split("\n".join(["before", f"{marker}py", *lines, marker, "after"]), limit)
    shown: list[str] = []
    for part in parts:
        assert length(part, "utf16") <= limit
        inside = False
        for line in part.split("\n"):
            if is_fence(line):
                inside = not inside
            elif line or inside:
                shown.append(line)
                assert inside is (line not in {"before", "after"})
        assert not inside
    assert [line for line in shown if line] == [line for line in ["before", *lines, "after"] if line]


@given(markdown_texts)
@example("```\n<b>$\n```\n" + "[w](https://e.org) " * 120)
@example("**" + "\U0001f680" * 3000 + "**")
def test_any_markdown_becomes_parts_the_bot_api_takes(text: str) -> None:
    for part in render(text):
        assert part.text.strip()
        check_text(part.text, [{"offset": e.offset, "length": e.length} for e in part.entities])


@given(st.lists(st.text("abz019 .,;:!?()$<>|-+='\"/&%@", max_size=40), max_size=30))
def test_prose_without_markup_is_shown_letter_by_letter(lines: list[str]) -> None:
    text = " ".join(f"w{line}" for line in lines)
    wanted = re.sub(r"\s+", "", text)
    shown = re.sub(r"\s+", "", "".join(part.text for part in render(text)))
    assert shown == wanted
