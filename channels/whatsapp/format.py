"""Markdown to what WhatsApp shows: its own marks (https://faq.whatsapp.com/539178204879377), in parts. Pure.

WhatsApp knows `*bold*`, `_italic_`, `~struck~`, `` `code` ``, code blocks, quotes and lists; no mark can be escaped.
Single marks are the same in both, so they are left as they are, and text that is converted already stays so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from channels.text import clean, split
from channels.whatsapp.limits import TEXT_CHARS_MAX

# While the text is cut a mark is one of these characters, which no text holds: noncharacters of Unicode.
_BOLD, _BOLD_END, _ITALIC, _ITALIC_END, _STRIKE, _STRIKE_END, _CODE, _CODE_END = map(chr, range(0xFDD0, 0xFDD8))
_ENDS = {_BOLD: _BOLD_END, _ITALIC: _ITALIC_END, _STRIKE: _STRIKE_END, _CODE: _CODE_END}
_SHOWN = str.maketrans(
    {
        _BOLD: "*",
        _BOLD_END: "*",
        _ITALIC: "_",
        _ITALIC_END: "_",
        _STRIKE: "~",
        _STRIKE_END: "~",
        _CODE: "`",
        _CODE_END: "`",
    }
)
_TAKEN = str.maketrans(dict.fromkeys(map(chr, range(0xFDD0, 0xFDD8)), "\ufffd"))
_ROOM_CHARS = 2 * len(_ENDS)
"""So many marks are closed at the end of a part and opened at the start of the next, at most."""
_JOINER = "\u2060"
"""Word joiner: keeps backticks inside of code from closing it, and is not seen."""

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marker>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<words>.*?)(?:[ \t]+#+)?[ \t]*$")
_BULLET = re.compile(r"^(?P<indent>[ \t]*)[*+-][ \t]+(?P<box>\[[ xX]\][ \t]+)?")
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r"^ {0,3}=+[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[> \t]*")
_DELIMITER = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")

_SPANNING = re.compile(
    r"(?<![\\*~`])(?P<mark>\*\*|~~)(?=[^\s*~])"
    r"(?P<words>[^*~`\n]+(?:\n(?![ \t]*(?:[-+>#|]|\d+[.)]))[^*~`\n]*[^*~`\s][^*~`\n]*)+)"
    r"(?<=\S)(?P=mark)(?![*~])"
)
_INLINE = re.compile(
    r"""(?P<escape>\\(?P<escaped>[!-/:-@\[-`{-~]))
      |(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)
      |(?P<auto><(?:https?|mailto|tel):[^\s<>]+>)
      |(?P<image>!?)\[(?P<label>[^\[\]\n]*)\]\((?P<target>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:[ \t]+"[^"\n]*")?\)
      |(?P<url>\bhttps?://[^\s<>*~]+)
      |(?P<both>\*\*\*(?=\S)(?P<both_words>(?:(?!\*\*\*).)+?)(?<=\S)\*\*\*)
      |(?P<bold>(?<!\*)\*\*(?=[^\s*])(?P<bold_words>(?:(?!\*\*).)+?)(?<=\S)\*\*(?!\*))
      |(?P<loose>(?<![\w*~])(?P<loose_mark>\*\*|~~)(?=[^\s*~])(?P<loose_words>[^*~\n]+?)(?P<blank>[ \t]+)
         (?P=loose_mark)(?![\w*~]))
      |(?P<under>(?<![\w_])__(?=[^\s_])(?P<under_words>(?:(?!__).)*?\W(?:(?!__).)*?)(?<=\S)__(?![\w_]))
      |(?P<strike>(?<!~)~~(?=[^\s~])(?P<strike_words>(?:(?!~~).)+?)(?<=\S)~~(?!~))
    """,
    re.VERBOSE,
)


def convert(markdown: str) -> str:
    """The whole text with WhatsApp's marks."""
    return _marked(markdown).translate(_SHOWN)


def render(markdown: str, limit_chars: int = TEXT_CHARS_MAX) -> tuple[str, ...]:
    """The parts that show this Markdown, each at most `limit_chars` long; none when nothing visible is left."""
    parts: list[str] = []
    opened: list[str] = []
    for piece in split(_marked(markdown), limit_chars - _ROOM_CHARS, unit="chars"):
        started = "".join(opened)
        for char in piece:
            if char in _ENDS:
                opened.append(char)
            elif opened and char == _ENDS[opened[-1]]:
                opened.pop()
        body = piece.rstrip()
        lead = piece[: len(piece) - len(piece.lstrip())]
        ended = "".join(_ENDS[mark] for mark in reversed(opened))
        shown = f"{lead}{started}{body[len(lead) :]}{ended}"
        shown = shown.lstrip("\n").rstrip().translate(_SHOWN)
        if shown.strip():
            parts.append(shown)
    return tuple(parts)


def _marked(markdown: str) -> str:
    source = clean(markdown).translate(_TAKEN).replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(_lines(source.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    """The converted lines. A mark that spans lines is closed and opened again at each: WhatsApp reads line by line."""
    prose: list[str] = []
    index = 0
    while index < len(lines):
        fence = _FENCE.match(lines[index])
        if fence is None:
            prose.append(lines[index])
            index += 1
            continue
        yield from _prose(prose)
        prose = []
        end = _fence_end(lines, index, fence)
        yield from _block(lines[index + 1 : end], len(fence["indent"]))
        index = end + 1
    yield from _prose(prose)


def _prose(lines: list[str]) -> Iterator[str]:
    lines = _SPANNING.sub(_each_line, "\n".join(lines)).split("\n") if lines else []
    index = 0
    while index < len(lines):
        line = lines[index]
        if "|" in line and index + 1 < len(lines) and _is_table(line, lines[index + 1]):
            end = index + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            yield from _table([_cells(row) for row in (line, *lines[index + 2 : end])])
            index = end
        elif index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]) and _is_prose(line):
            yield _heading(line.strip())
            index += 2
        else:
            yield _line(line)
            index += 1


def _each_line(found: re.Match[str]) -> str:
    mark, words = found["mark"], found["words"]
    return "\n".join(f"{mark}{line.strip()}{mark}" for line in words.split("\n"))


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not any(form.match(line) for form in (_HEADING, _BULLET, _QUOTE, _RULE))


def _fence_end(lines: list[str], start: int, fence: re.Match[str]) -> int:
    """The line that closes a code block, or one past the last: an open block goes to the end."""
    for index in range(start + 1, len(lines)):
        closing = lines[index].strip()
        if closing.startswith(fence["marker"]) and not closing.strip(fence["marker"][0]):
            return index
    return len(lines)


def _block(code: list[str], indent_chars: int) -> Iterator[str]:
    """WhatsApp shows a language behind the fence as code, so it is left out."""
    yield "```"
    for line in code:
        own = line[indent_chars:] if not line[:indent_chars].strip() else line
        yield re.sub(r"`{3,}", lambda run: _JOINER.join(run[0]), own)
    yield "```"


def _line(line: str) -> str:
    if _RULE.match(line):
        return "\N{HORIZONTAL BAR}" * 3
    if heading := _HEADING.match(line):
        return _heading(heading["words"])
    quote = _QUOTE.match(line)
    if quote:
        return f"> {_line(line[quote.end() :])}" if line[quote.end() :].strip() else ">"
    if bullet := _BULLET.match(line):
        box = bullet["box"]
        sign = "" if box is None else "\N{BALLOT BOX} " if box[1] == " " else "\N{BALLOT BOX WITH CHECK} "
        return f"{bullet['indent']}- {sign}{_inline(line[bullet.end() :])}"
    return _inline(line)


def _heading(words: str) -> str:
    """Bold is all there is for a heading; bold inside of it would end it."""
    inner = _inline(words).replace(_BOLD, "").replace(_BOLD_END, "")
    is_marked = len(inner) > 2 and inner[0] == inner[-1] == "*" and "*" not in inner[1:-1]
    return inner if is_marked or not inner.strip() else f"{_BOLD}{inner}{_BOLD_END}"


def _inline(text: str) -> str:
    return _INLINE.sub(_inline_one, text)


def _inline_one(found: re.Match[str]) -> str:
    if found["escape"]:
        return found["escaped"]
    if found["ticks"]:
        return _code_span(found["code"])
    if found["auto"]:
        return found["auto"][1:-1].removeprefix("mailto:").removeprefix("tel:")
    if found["label"] is not None:
        return _link(found["label"], found["target"])
    if found["both"]:
        return f"{_BOLD}{_ITALIC}{_inline(found['both_words'])}{_ITALIC_END}{_BOLD_END}"
    if found["bold"]:
        return f"{_BOLD}{_inline(found['bold_words'])}{_BOLD_END}"
    if found["loose"]:
        mark = _BOLD if found["loose_mark"] == "**" else _STRIKE
        return f"{mark}{_inline(found['loose_words'])}{_ENDS[mark]}{found['blank']}"
    if found["under"]:
        return f"{_BOLD}{_inline(found['under_words'])}{_BOLD_END}"
    if found["strike"]:
        return f"{_STRIKE}{_inline(found['strike_words'])}{_STRIKE_END}"
    return found["url"]


def _code_span(code: str) -> str:
    """A span with more than one backtick around it may begin and end with a space that is not shown (CommonMark)."""
    if code.startswith(" ") and code.endswith(" ") and code.strip():
        code = code[1:-1]
    # There is no span for code with a backtick in it: the text itself matters more than its look.
    return code if "`" in code else f"{_CODE}{code}{_CODE_END}"


def _link(label: str, target: str) -> str:
    words = _inline(label).strip()
    shown = target.removeprefix("mailto:").removeprefix("tel:")
    if not words or words == shown:
        return shown
    return f"{words} ({shown})" if shown else words


# Tables: a phone is too narrow for columns, so each row becomes its first cell with the others under it.


def _is_table(head: str, delimiter: str) -> bool:
    return "-" in delimiter and bool(_DELIMITER.match(delimiter)) and len(_cells(head)) == len(_cells(delimiter))


def _cells(row: str) -> list[str]:
    bare = row.strip().removeprefix("|")
    if bare.endswith("|") and not bare.endswith("\\|"):
        bare = bare[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare)]


def _table(rows: list[list[str]]) -> Iterator[str]:
    head, *body = rows
    if not body:
        yield " | ".join(map(_inline, head))
        return
    for row in body:
        first, *others = [*row, *[""] * (len(head) - len(row))][: max(len(head), len(row))]
        if len(head) <= 2:
            value = _inline(others[0]) if others else ""
            yield f"{_heading(first)}: {value}" if value else _heading(first)
            continue
        yield _heading(first)
        for number, cell in enumerate(others, start=1):
            name = _inline(head[number]) if number < len(head) else ""
            if cell:
                yield f"- {name}: {_inline(cell)}" if name else f"- {_inline(cell)}"
