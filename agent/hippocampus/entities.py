"""The entity pages, `bank/entities/<slug>.md`: who is who, under every name, and what is known of each.

A page is found by the name in its file, by its heading, and by each of its `aliases:`. So to give somebody another
name, edit the heading; to make two pages one, write the one's name among the aliases of the other.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import regex

from agent.hippocampus.facts import MENTION
from agent.hippocampus.tending import Part, Wanted
from agent.hippocampus.types import ENTITIES, OWNER, Fact, Words
from agent.lines import lines_of

SLUG_BYTES_MAX = 200
LINKS_MAX = 20
SUMMARY_FACTS = 3
_ALIASES = re.compile(r"\s*(?:[-*]\s+)?aliases\s*:\s*(.*)$", re.IGNORECASE)
_UNSAFE = regex.compile(r"[^\p{L}\p{M}\p{N}_-]+")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))})
_OWN_NAMES = ("Owner", "المالك")
_PRONOUNS = ("me", "I", "my", "myself", "mine", "أنا")
"""What `@me` and `--entity me` mean; in a sentence these words are no names."""
_ARTICLE = re.compile("^(?:ال|al |el )")
_FACT_LINE = re.compile(
    r"\s*[-*+]\s+\[(?P<letter>[WBOS])\]\s+(?P<text>.*?)(?:\s+\((?P<source>[^()]*#L\d+[^()]*)\))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A page: its slug (the file's name without `.md`), the name in its heading, its other names."""

    slug: str
    name: str
    aliases: tuple[str, ...] = ()
    exists: bool = True

    @property
    def path(self) -> str:
        return f"{ENTITIES}/{self.slug}.md"


@dataclass(slots=True)
class Entities:
    """All pages by every name. `merged`: slugs whose name is an alias of another page now, and of which."""

    words: Words
    pages: dict[str, Entity] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    by_name: dict[str, str] = field(default_factory=dict)
    """Names as they were asked for; filled when all pages are known."""

    def slug_of(self, name: str) -> str:
        """The page of a name as mentioned; the slug of a new page where there is none yet."""
        slug = self.by_name.get(name)
        if slug is None:
            slug = self.by_name[name] = self._slug_of(name)
        return slug

    def _slug_of(self, name: str) -> str:
        key = self.key(name)
        known = self.by_key.get(key)
        if known is not None:
            return known
        slug = _free(safe_slug(name), self.pages)
        self.pages[slug] = Entity(slug, name.replace("-", " ").replace("_", " ").strip(), exists=False)
        self.by_key[key] = slug
        return slug

    def find(self, name: str) -> Entity | None:
        """The page of a name as somebody typed it; the article does not matter where nothing fits better."""
        key = self.key(name.lstrip("@"))
        slug = self.by_key.get(key)
        if slug is None:
            bare = _ARTICLE.sub("", key)
            matches = {found for other, found in self.by_key.items() if bare and _ARTICLE.sub("", other) == bare}
            slug = matches.pop() if len(matches) == 1 else None
        return self.pages.get(slug) if slug else None

    def key(self, name: str) -> str:
        return self.words.sameness_key(name.replace("-", " "))

    def names(self, slug: str) -> tuple[str, ...]:
        """Every name of a page."""
        page = self.pages.get(slug)
        own = _OWN_NAMES if slug == self.by_key.get(self.key(OWNER), OWNER) else ()
        if page is None:
            return (slug.replace("-", " "), *own)
        return tuple(dict.fromkeys((page.name, page.slug.replace("-", " "), *page.aliases, *own)))


def load_entities(workspace: Path, words: Words) -> Entities:
    """Reads the heads of all entity pages. A page that cannot be read counts by its file name."""
    found = Entities(words)
    heads: list[Entity] = []
    try:
        names = sorted(entry.name for entry in os.scandir(workspace / ENTITIES) if entry.name.endswith(".md"))
    except OSError:
        names = []
    for file in names:
        if file.startswith("."):
            continue
        try:
            text = (workspace / ENTITIES / file).read_bytes().decode("utf-8", "replace")
        except OSError:
            text = ""
        heads.append(_head(file.removesuffix(".md"), text))
    for page in heads:
        found.pages[page.slug] = page
        found.by_key.setdefault(found.key(page.slug), page.slug)
        found.by_key.setdefault(found.key(page.name), page.slug)
    _merge(found, heads)
    owner = found.by_key.get(found.key(OWNER), OWNER)
    for name in (*_OWN_NAMES, *_PRONOUNS):
        found.by_key.setdefault(found.key(name), owner)
    if owner not in found.pages:
        found.pages[owner] = Entity(owner, OWNER, exists=False)
    return found


def _merge(found: Entities, heads: Sequence[Entity]) -> None:
    """Adds the aliases; a page whose name is an alias of another one is that one from now on."""
    for page in heads:
        for alias in page.aliases:
            key = found.key(alias)
            other = found.by_key.get(key)
            if other is None:
                found.by_key[key] = page.slug
            elif other != page.slug and other not in found.merged and page.slug not in found.merged:
                found.merged[other] = page.slug
    for key, slug in found.by_key.items():
        found.by_key[key] = found.merged.get(slug, slug)


def _head(slug: str, text: str) -> Entity:
    name, aliases = slug.replace("-", " "), list[str]()
    for line in lines_of(text.removeprefix("\ufeff")):
        if line.startswith("## "):
            break
        if line.startswith("# ") and line[2:].strip():
            name = line[2:].strip()
        elif found := _ALIASES.match(line):
            aliases += [alias.strip().lstrip("@") for alias in re.split(r"[,،;؛]", found[1]) if alias.strip()]
    return Entity(slug, name, tuple(aliases))


def safe_slug(name: str) -> str:
    """A file name of at most 200 bytes, safe everywhere, that stays readable; long or odd names end in a hash."""
    name = unicodedata.normalize("NFC", name).strip()
    slug = _UNSAFE.sub("-", name).strip("-")
    odd = not slug or slug.casefold() in _RESERVED
    if len(slug.encode()) > SLUG_BYTES_MAX or odd:
        mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        while len(slug.encode()) > SLUG_BYTES_MAX - 9:
            slug = slug[:-1]
        slug = f"{slug}-{mark}" if slug else mark
    return slug


def _free(slug: str, taken: Mapping[str, Entity]) -> str:
    """The slug, with a number where another name has it already, whatever the case of its letters."""
    used = {other.casefold() for other in taken}
    name, n = slug, 1
    while name.casefold() in used:
        n += 1
        name = f"{slug}-{n}"
    return name


@dataclass(frozen=True, slots=True)
class Told:
    """A fact on an entity page, with all places that say it, the oldest first."""

    letter: str
    text: str
    sources: tuple[Fact, ...]

    @property
    def line(self) -> str:
        places = "; ".join(f"{fact.ref}, {fact.day.isoformat()}" for fact in self.sources)
        return f"- [{self.letter}] {self.text} ({places})"


def told(facts: Iterable[Fact], words: Words) -> list[Told]:
    """Facts with the doubles folded into one, in the order of their days; all their sources are kept."""
    groups: dict[tuple[str, str], list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: (fact.day, fact.path, fact.line)):
        groups.setdefault((fact.letter, words.sameness_key(plain(fact.text))), []).append(fact)
    return [Told(letter, group[0].text, tuple(group)) for (letter, _), group in groups.items()]


def plain(text: str) -> str:
    """A fact's text with its mentions as plain names."""
    return MENTION.sub(lambda found: found[1].replace("-", " "), text)


def wanted_page(entity: Entity, facts: Sequence[Told], links: Sequence[tuple[Entity, int]], summary: str) -> Wanted:
    """The page of an entity. When it was first and last seen goes behind `summary`."""
    first = min((told.sources[0].day for told in facts), default=None)
    last = max((told.sources[-1].day for told in facts), default=None)
    seen = "" if first is None or last is None else f"First seen {first.isoformat()}, last seen {last.isoformat()}."
    lines = tuple(told.line for told in facts)
    linked = tuple(f"- [{other.name}]({other.slug}.md)" for other, _ in links[:LINKS_MAX])
    aliases = f"aliases: {', '.join(entity.aliases)}".rstrip()
    return Wanted(
        f"# {entity.name}", (aliases,), f"{summary} {seen}".strip(), (Part("Facts", lines), Part("Links", linked))
    )


def sentence(text: str) -> str:
    """The text with an end."""
    return text if text.endswith((".", "!", "?", "؟", "…")) else f"{text}."


def links_of(facts: Iterable[Fact], slugs: Mapping[Fact, tuple[str, ...]]) -> dict[str, Counter[str]]:
    """For each page, the pages mentioned together with it, and how often."""
    links: dict[str, Counter[str]] = {}
    for fact in facts:
        for slug in slugs[fact]:
            links.setdefault(slug, Counter()).update(other for other in slugs[fact] if other != slug)
    return links


def page_facts(text: str) -> Iterable[tuple[int, str, str, str | None]]:
    """Line, letter, text and source of the facts that stand on a page (source None: a person wrote it there)."""
    for number, line in enumerate(lines_of(text), 1):
        if found := _FACT_LINE.match(line):
            yield number, found["letter"], found["text"], found["source"]
