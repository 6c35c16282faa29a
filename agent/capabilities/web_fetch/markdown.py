"""HTML to Markdown, for reading: headings, paragraphs, lists, links, code, tables; no scripts, styles or menus.

Whoever wrote the page may want to keep us busy, so everything here is linear in its length: the parsers there are
take minutes for a megabyte of open tags, or forever for unclosed quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import quote, urljoin

# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol",
    "p", "pre", "section", "summary", "table", "title", "tr", "ul",
})
_DROPPED = frozenset({
    "button", "head", "iframe", "math", "nav", "noscript", "object", "script", "select", "style", "svg", "template",
    "textarea",
})
# fmt: on
"""Left out with all that is in them; a head is left out but for its title."""
_RAW = frozenset({"script", "style", "textarea", "iframe"})
_INDENT_MAX = 8
_MARK = re.compile(r"<(?=[A-Za-z/!?])")
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9:-]*)")
_STOPS = re.compile(r"[>\"']")
_SPACE = re.compile(r"\s+")
_HREF = re.compile(r"(?<![\w-])href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*))", re.IGNORECASE)
_ALT = re.compile(r"(?<![\w-])alt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_WITHOUT_END = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr", "area", "base", "col", "source"})


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text (no `tag`), or a tag with the text of its attributes."""

    text: str
    tag: str = ""
    closing: bool = False


def to_markdown(html: str, base_url: str) -> tuple[str, str]:
    """Title and Markdown text of a page. Never raises for odd HTML."""
    reader = _Reader(base_url)
    for piece in _pieces(html):
        reader.take(piece)
    return " ".join(reader.title.split()), reader.markdown()


def _pieces(html: str) -> Iterator[_Piece]:
    """Texts and tags in order. Nothing is looked for twice: what is not found once is not there further on either."""
    at, missing = 0, set[str]()
    while at < len(html):
        mark = _MARK.search(html, at)
        if mark is None:
            yield _Piece(html[at:])
            return
        begin = mark.start()
        if begin > at:
            yield _Piece(html[at:begin])
        if html.startswith("<!--", begin):
            end = html.find("-->", begin + 4)
            at = end + 3 if end >= 0 else len(html)
            continue
        found = _TAG.match(html, begin)
        if found is None:
            end = html.find(">", begin)
            at = end + 1 if end >= 0 else len(html)
            continue
        at = _tag_end(html, found.end(), missing)
        tag, closing = found[1].lower(), html[begin + 1] == "/"
        yield _Piece(html[found.end() : at], tag, closing)
        if tag in _RAW and not closing:
            # What looks like a tag in there is none, but for its own end.
            ended = re.compile(f"</{tag}", re.IGNORECASE).search(html, at)
            at = ended.start() if ended else len(html)


def _tag_end(html: str, at: int, missing: set[str]) -> int:
    """Where a tag ends, quoted attributes skipped; a quote that is never closed counts as none."""
    while stop := _STOPS.search(html, at):
        mark, at = stop[0], stop.end()
        if mark == ">":
            return at
        if mark not in missing:
            end = html.find(mark, at)
            if end < 0:
                missing.add(mark)
            else:
                at = end + 1
    return len(html)


@dataclass(slots=True)
class _Reader:
    """Takes the pieces of a page one after the other."""

    base_url: str
    title: str = ""
    _out: list[str] = field(default_factory=list[str])
    _lists: list[int] = field(default_factory=list[int])
    """For each open list the number of its last item; -1: it is not numbered."""
    _dropped: str = ""
    _depth: int = 0
    _in_title: bool = False
    _pre: bool = False
    _link: tuple[str, int] | None = None
    _cells: int = 0

    def markdown(self) -> str:
        lines = (line.rstrip() for line in "".join(self._out).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def take(self, piece: _Piece) -> None:
        if piece.tag == "title":
            self._in_title = not piece.closing and not self.title
        elif self._in_title and not piece.tag:
            self.title += unescape(piece.text)
        elif self._dropped:
            self._skip(piece)
        elif piece.tag in _DROPPED:
            if not piece.closing and not piece.text.rstrip(">").endswith("/"):
                self._dropped, self._depth = piece.tag, 1
        elif not piece.tag:
            self._text(unescape(piece.text))
        elif piece.closing:
            self._end(piece.tag)
        else:
            self._begin(piece.tag, piece.text)

    def _skip(self, piece: _Piece) -> None:
        """Inside what is left out, until it ends. A page that never ends its head has its body all the same."""
        if piece.tag == self._dropped:
            self._depth += -1 if piece.closing else 1
        if self._depth == 0 or (self._dropped == "head" and piece.tag == "body"):
            self._dropped = ""

    def _text(self, text: str) -> None:
        if self._pre:
            self._add(text)
            return
        text = _SPACE.sub(" ", text)
        if text.startswith(" ") and (not self._out or self._out[-1][-1] in "\n "):
            text = text[1:]
        self._add(text)

    def _begin(self, tag: str, attributes: str) -> None:
        if tag in {"ul", "ol"}:
            self._break(1 if self._lists else 2)
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            self._break(1)
            self._out.append("  " * min(_INDENT_MAX, max(0, len(self._lists) - 1)) + self._bullet())
        elif tag == "tr":
            self._break(1)
            self._cells = 0
        elif tag in {"td", "th"}:
            if self._cells:
                self._out.append(" | ")
            self._cells += 1
        elif tag == "br":
            self._break(1)
        elif tag == "a":
            self._close_link()
            found = _HREF.search(attributes)
            href = unescape(next((part for part in found.groups() if part), "")) if found else ""
            self._link = (self._address(href), len(self._out))
        elif tag == "img":
            found = _ALT.search(attributes)
            if found and (alt := " ".join(unescape(found[1] or found[2] or "").split())):
                self._out.append(f"[picture: {alt}]")
        elif tag == "code":
            self._add("" if self._pre else "`")
        elif tag in _BLOCKS:
            self._begin_block(tag)

    def _begin_block(self, tag: str) -> None:
        self._close_link()
        if not (self._lists and self._out and self._out[-1].endswith(("- ", ". "))):
            self._break(2)
        if tag == "pre":
            self._pre = True
            self._out.append("```\n")
        elif tag == "blockquote":
            self._out.append("> ")
        elif tag == "hr":
            self._out.append("---\n\n")
        elif tag[0] == "h" and tag[1:].isdigit():
            self._out.append("#" * int(tag[1:]) + " ")

    def _end(self, tag: str) -> None:
        if tag in {"ul", "ol"}:
            if self._lists:
                self._lists.pop()
            self._break(1 if self._lists else 2)
        elif tag == "pre" and self._pre:
            self._pre = False
            self._out.append("\n```\n\n")
        elif tag == "a":
            self._close_link()
        elif tag == "code":
            self._add("" if self._pre else "`")
        elif tag in _BLOCKS and tag not in {"li", "tr"} and tag not in _WITHOUT_END:
            self._close_link()
            self._break(2)

    def _close_link(self) -> None:
        if self._link is None:
            return
        (href, begin), self._link = self._link, None
        text = " ".join("".join(self._out[begin:]).split())
        if text and href and not self._pre:
            self._out[begin:] = [f"[{text}]({href})"]

    def _address(self, href: str) -> str:
        """Where a link leads; empty for what leads to no page."""
        try:
            url = urljoin(self.base_url, href.strip())
        except ValueError:
            return ""
        if not href or not url.startswith(("http://", "https://", "mailto:")):
            return ""
        # An address has no such characters; left as they are they could end the link, or look like markup.
        return quote(url, safe="%/:=&?~#+!$,;'@*[]", errors="replace")

    def _bullet(self) -> str:
        if not self._lists or self._lists[-1] < 0:
            return "- "
        self._lists[-1] += 1
        return f"{self._lists[-1]}. "

    def _break(self, lines: int) -> None:
        """At least so many line breaks."""
        if self._out:
            last = self._out[-1]
            have = len(last) - len(last.rstrip("\n"))
            self._add("\n" * (lines - have))

    def _add(self, text: str) -> None:
        if text:
            self._out.append(text)
