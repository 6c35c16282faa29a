"""Markdown on the page: readable, and never able to act."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.inapp.limits import RENDER_CHARS_MAX
from channels.inapp.render import to_html

PIECES = [
    "<script>",
    "<img src=x onerror=a()>",
    "](javascript:a())",
    "[a",
    "`",
    "```\n",
    "|a|\n|-|\n",
    "**",
    "\n\n",
    ">",
]


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(html: str) -> list[tuple[str, dict[str, str | None]]]:
    seen = Seen()
    seen.feed(html)
    return seen.tags


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8))).map("".join))
def test_no_text_becomes_something_that_runs(text: str) -> None:
    for tag, attributes in tags_of(to_html(text)):
        assert tag not in {"script", "img", "iframe", "style", "form", "input", "svg"}
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src"}]
        href = attributes.get("href")
        assert href is None or href.split(":")[0].lower() in {"http", "https", "mailto", "tel"}


def test_links_open_elsewhere_and_tell_nothing() -> None:
    ((_, _), (tag, attributes)) = tags_of(to_html("[a](https://example.org)"))
    assert tag == "a"
    assert attributes == {"href": "https://example.org", "target": "_blank", "rel": "noopener noreferrer"}


def test_a_picture_elsewhere_is_only_a_link() -> None:
    assert [tag for tag, _ in tags_of(to_html("![cat](https://example.org/cat.png)"))] == ["p", "a"]


@pytest.mark.parametrize(
    ("markdown", "tag", "direction"),
    [
        ("مرحبا", "p", "rtl"),
        ("قال: “hello”", "p", "rtl"),
        ("“مرحبا”", "p", "rtl"),
        ("وجدتُ:\n\n- «my passport» (2026-11-30, `file:a.md`)", "ul", "rtl"),
        ("Found:\n\n- “مرحبا” (`file:a.md`)", "ul", "ltr"),
        ("- مرحبا", "ul", "rtl"),
        ("- hello مرحبا", "ul", "ltr"),
        ("1. (12) אחת", "ol", "rtl"),
        ("> مرحبا", "blockquote", "rtl"),
        ("| مرحبا | b |\n|---|---|\n| c | d |", "div", "rtl"),
        ("```\nمرحبا\n```", "pre", "ltr"),
    ],
)
def test_each_block_has_its_direction(markdown: str, tag: str, direction: str) -> None:
    assert dict(tags_of(to_html(markdown)))[tag]["dir"] == direction


def test_quotations_and_dates_keep_their_place_in_a_line_of_another_direction() -> None:
    html = to_html("وجدتُ «my <b>» بتاريخ 2026-11-30 19:33.")
    assert "«<bdi>my &lt;b&gt;</bdi>»" in html
    assert '<bdi dir="ltr">2026-11-30 19:33</bdi>' in html
    assert to_html("it's “**bold**” & more").startswith('<p dir="ltr">it\'s “<strong>bold</strong>” &amp; more')


def test_tables_and_code_stand_in_boxes_that_scroll() -> None:
    html = to_html("| a |\n|---|\n| `x<y` |\n\n```py\nif a < b:\n```")
    assert '<div class="scroll-box"' in html
    assert "x&lt;y" in html
    assert "if a &lt; b:" in html


def test_a_very_long_text_is_shown_as_it_is() -> None:
    html = to_html("<b>" + "x" * RENDER_CHARS_MAX)
    assert html.startswith('<p class="plain" dir="auto">&lt;b&gt;x')
