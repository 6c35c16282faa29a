"""Markdown to HTML that is safe to put into the page. The libraries are imported with the first message."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from channels.inapp.limits import RENDER_CHARS_MAX, RENDERED_KEPT

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_TEXT_BLOCKS = {"paragraph_open", "heading_open", "th_open", "td_open"}
_CONTAINERS = {"blockquote_open", "bullet_list_open", "ordered_list_open", "table_open"}
_TAGS = {
    *(
        "a",
        "bdi",
        "blockquote",
        "br",
        "code",
        "del",
        "div",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
    ),
    *("pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_QUOTATION = "«[^«»]*»|“[^“”]*”"
_NOT_OWN = re.compile(f"{_QUOTATION}|`[^`]*`")
_APART = re.compile(rf"(?P<date>\b[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ][0-9:]+)?\b)|{_QUOTATION}")
_ATTRIBUTES = {
    "a": {"href", "title"},
    "bdi": {"dir"},
    "code": {"dir"},
    "div": {"class", "dir", "tabindex"},
    "ol": {"dir", "start"},
    "pre": {"dir", "tabindex"},
    "p": {"class", "dir"},
    **{tag: {"dir"} for tag in ("ul", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "th", "td")},
}


@lru_cache(maxsize=RENDERED_KEPT)
def to_html(text: str) -> str:
    """The message as sanitised HTML: each block takes its own direction, tables and code sit in boxes that scroll."""
    import nh3

    if len(text) > RENDER_CHARS_MAX:
        return f'<p class="plain" dir="auto">{html.escape(text)}</p>'
    return nh3.clean(
        _parser().render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto", "tel"},
        url_relative="deny",
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.core.ruler.push("directions", _directions)
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _directions(state: StateCore) -> None:
    """A block takes its direction from its own words, and what contains blocks from those of its first text.

    Quotations and code do not count, they may be of another language: a block without words of its own takes the
    direction of the block before. A browser's `auto` can do neither.
    """
    so_far = ""
    for index, token in enumerate(state.tokens):
        if token.type in _TEXT_BLOCKS or token.type in _CONTAINERS:
            first = next((inner.content for inner in state.tokens[index:] if inner.type == "inline"), "")
            so_far = _direction(_NOT_OWN.sub(" ", first)) or so_far or _direction(first) or "ltr"
            token.attrSet("dir", so_far)


def _direction(text: str) -> str:
    """That of the first letter that has one (Unicode Bidirectional Algorithm, rules P2 and P3), else empty."""
    for letter in text:
        kind = unicodedata.bidirectional(letter)
        if kind in {"L", "R", "AL"}:
            return "ltr" if kind == "L" else "rtl"
    return ""


def _text(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """Quotations and dates stand apart from the direction of the text around them; else their ends change places."""
    text = html.escape(tokens[index].content, quote=False)
    return _APART.sub(lambda found: f'<bdi dir="ltr">{found[0]}</bdi>' if found["date"] else _isolated(found[0]), text)


def _isolated(quotation: str) -> str:
    return f"{quotation[0]}<bdi>{quotation[1:-1]}</bdi>{quotation[-1]}"


def _table_open(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return f'<div class="scroll-box" dir="{tokens[index].attrGet("dir")}" tabindex="0"><table>'


def _table_close(_self: RendererHTML, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return "</table></div>"


def _code(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return f'<pre dir="ltr" tabindex="0"><code>{html.escape(tokens[index].content)}</code></pre>'


def _code_inline(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return f'<code dir="auto">{html.escape(tokens[index].content)}</code>'


def _image(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """A picture elsewhere is a link: the page fetches nothing from other servers."""
    token = tokens[index]
    address = str(token.attrGet("src") or "")
    return f'<a href="{html.escape(address)}">{html.escape(token.content or address)}</a>'


_RULES = {
    "table_open": _table_open,
    "table_close": _table_close,
    "fence": _code,
    "code_block": _code,
    "code_inline": _code_inline,
    "text": _text,
    "image": _image,
}
