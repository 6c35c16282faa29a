"""Markdown to what Telegram shows: plain text with entities, in parts it accepts. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyromark
from telegramify_markdown import RenderConfig
from telegramify_markdown import convert as telegramify

from channels.telegram.limits import ENTITIES_MAX, TEXT_UNITS_MAX
from channels.text import clean, cut, length

Convert = Callable[[str], tuple[str, list[Any]]]
"""Markdown -> text and entities; each entity has `type`, `offset`, `length`, `url`, `language`."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A formatted run; `offset` and `length` in UTF-16 code units (Bot API, MessageEntity)."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One message for Telegram: at most TEXT_UNITS_MAX units and ENTITIES_MAX entities."""

    text: str
    entities: tuple[Entity, ...] = ()


# What the converter would drop or misread outside of code. A backslash pair and `<https://...>` stay as they are.
_CAREFUL = re.compile(
    r"""(?P<keep>\\[\s\S]|<(?:https?|mailto|tel|tg):[^\s<>]*>)
      |(?P<url>\bhttps?://[^\s<>`\\]+)
      |(?P<escape>
          <                             # an HTML tag, a comment, an address
         |\[(?=\^)                      # a footnote
         |\$                            # a price, not a formula
         |(?<=[0-9A-Za-z])\*(?=[0-9A-Za-z])
         |(?<=[0-9])\*\*(?=[0-9])       # 2*3, 2**3
       )
      |(?P<spoiler>\|\|)""",
    re.VERBOSE,
)
_UNDERLINE = re.compile(r"(?<=\S)([ \t]*\n {0,3})(?=(?:-+|=+)[ \t]*$)", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
_DEFINITION = re.compile(r"^( {0,3})\[(?P<label>[^\]\n]{1,200})\]:[ \t]*(?P<target>\S*)", re.MULTILINE)
_LABEL = re.compile(r"\[([^\]\n]{1,200})\](?!:)")
# A run that ends in a blank (`**so **`), as models write it; Markdown would show the marks. Whole runs are passed over.
_LOOSE = re.compile(
    r"(?<![\w*~\\])(?P<mark>\*\*|~~)(?=[^\s*~])[^*~\n]+?(?:(?<=\S)(?P=mark)|(?P<blank>[ \t]+)(?P=mark)(?![\w*~]))"
)
_URL_SIGNS = re.compile(r"[_*~$]")
_LINK = re.compile(r"(?:https?|tg|mailto|tel|ftp):\S+", re.IGNORECASE)


def render(markdown: str, convert: Convert | None = None) -> tuple[Part, ...]:
    """The parts that show this Markdown, in order; none when nothing visible is left.

    The same text always gives the same parts. When the converter fails, the parts hold the source as it is.
    """
    source = clean(markdown).replace("\r\n", "\n").replace("\r", "\n")
    try:
        text, entities = (convert or _convert)(prepare(source))
    except (ValueError, TypeError, LookupError, AttributeError, AssertionError, RuntimeError):
        text, entities = source, []
    if not text.strip():
        text, entities = source, []
    return tuple(_parts(text, _usable(text, entities)))


def _convert(markdown: str) -> tuple[str, list[Any]]:
    return telegramify(markdown, config=_CONFIG)


def _plain_symbols() -> RenderConfig:
    """Headings are shown by their weight alone, lists by the usual signs."""
    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item = "\N{BULLET}"
    symbols.task_completed = "\N{BALLOT BOX WITH CHECK}"
    symbols.task_uncompleted = "\N{BALLOT BOX}"
    return config


_CONFIG = _plain_symbols()


def prepare(markdown: str) -> str:
    """The Markdown with everything escaped that the converter would drop or take for formatting; code untouched."""
    markdown = _tidied(markdown)
    used = set(_LABEL.findall(markdown))

    def definition(match: re.Match[str]) -> str:
        real = match["label"] in used and _LINK.match(match["target"].lstrip("<"))
        return match[0] if real else f"{match[1]}\\{match[0][len(match[1]) :]}"

    def careful(match: re.Match[str]) -> str:
        found = match[0]
        if match["url"]:
            return _URL_SIGNS.sub(lambda sign: f"\\{sign[0]}", found)
        if match["spoiler"]:
            return r"\|\|"
        return f"\\{found}" if len(found) == 1 else found if match["keep"] else r"\*\*"

    prepared: list[str] = []
    for stretch, is_code in _stretches(markdown):
        if is_code:
            prepared.append(stretch)
            continue
        prose = _TABLE_ROW.sub(lambda row: row[0].replace("||", "| |"), stretch)
        prose = _DEFINITION.sub(definition, _UNDERLINE.sub(r"\1\\", prose))
        prepared.append(_CAREFUL.sub(careful, prose))
    return "".join(prepared)


def _tidied(markdown: str) -> str:
    """Blanks at the end of a bold or struck run go behind it."""
    prose = "".join(re.sub(r"[^\n]", "\0", one) if is_code else one for one, is_code in _stretches(markdown))
    letters = list(markdown)
    for run in _LOOSE.finditer(prose):
        if blank := run["blank"]:
            letters[run.start("blank") : run.end()] = run["mark"] + blank
    return "".join(letters)


def _stretches(markdown: str) -> Iterator[tuple[str, bool]]:
    """The text in turns outside and inside of code, as the converter's own parser sees it."""
    data = markdown.encode()
    position = 0
    for event, where in pyromark.events_with_range(markdown, options=pyromark.Options.ENABLE_TABLES):
        if not isinstance(event, dict):
            continue
        start: Any = event.get("Start")
        if "Code" not in event and not (isinstance(start, dict) and "CodeBlock" in start):
            continue
        yield data[position : where["start"]].decode(), False
        yield data[where["start"] : where["end"]].decode(), True
        position = where["end"]
    yield data[position:].decode(), False


def _usable(text: str, entities: list[Any]) -> list[Entity]:
    """Entities inside of the text, each once, ordered; links only where Telegram can open them."""
    total = length(text, "utf16")
    kept: dict[Entity, None] = {}
    for found in entities:
        entity = Entity(found.type, found.offset, found.length, found.url, found.language)
        inside = entity.offset >= 0 and 0 < entity.length <= total - entity.offset
        if inside and (entity.type != "text_link" or _LINK.fullmatch(entity.url or "")):
            kept[entity] = None
    return sorted(kept, key=lambda entity: (entity.offset, -entity.length))


def _parts(text: str, entities: list[Entity]) -> Iterator[Part]:
    units = [0, *accumulate(2 if char > "\uffff" else 1 for char in text)]
    start = 0
    while start < len(text):
        entities = [entity for entity in entities if entity.offset + entity.length > units[start]]
        end = cut(text, start, TEXT_UNITS_MAX)
        inside = _clipped(entities, units[start], units[end])
        if len(inside) > ENTITIES_MAX and inside[ENTITIES_MAX].offset > 0:
            end = cut(text, start, inside[ENTITIES_MAX].offset)
            inside = _clipped(entities, units[start], units[end])
        first = start + len(text[start:end]) - len(text[start:end].lstrip("\n"))
        last = first + len(text[first:end].rstrip())
        if last > first:
            yield Part(text[first:last], tuple(_clipped(entities, units[first], units[last])[:ENTITIES_MAX]))
        start = end


def _clipped(entities: list[Entity], start: int, end: int) -> list[Entity]:
    """The entities between two offsets, cut to them and counted from the first."""
    clipped: list[Entity] = []
    for entity in entities:
        if entity.offset >= end:
            break
        first, last = max(entity.offset, start), min(entity.offset + entity.length, end)
        if first < last:
            clipped.append(replace(entity, offset=first - start, length=last - first))
    return clipped
