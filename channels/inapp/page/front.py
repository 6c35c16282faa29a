"""The page's files: two templates, and scripts, styles and words that are served as they are."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from channels.inapp.security import HEADERS

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
LANGUAGES = ("en", "ar")
_RIGHT_TO_LEFT = {"ar"}


def page(request: web.Request) -> web.Response:
    return _render(request, "page.html", 200)


def welcome(request: web.Request, *, code_was_bad: bool = False) -> web.Response:
    """How to get a link, for who has none; 401."""
    return _render(request, "welcome.html", 401, code_was_bad=code_was_bad)


def enter(request: web.Request) -> web.Response:
    """On to `/` without the code.

    After a link on another site a browser would leave the strict cookie out of a redirect, so there the page itself
    goes on.
    """
    if request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
        return _render(request, "enter.html", 200)
    return web.Response(status=303, headers={**HEADERS, "Location": "/", "Cache-Control": "no-store"})


async def asset(request: web.Request) -> web.StreamResponse:
    """A file of `styles/` or `modules/`."""
    path = _assets().get(request.match_info["path"])
    if path is None:
        return web.Response(status=404, headers=HEADERS)
    headers = {**HEADERS, "Content-Type": _KINDS[path.suffix], "Cache-Control": "no-cache"}
    return web.FileResponse(path, headers=headers)


@lru_cache(maxsize=1)
def _assets() -> dict[str, Path]:
    """What may be served, by the path in the address."""
    files = [*(_FOLDER / "styles").iterdir(), *(_FOLDER / "modules").iterdir()]
    return {f"{path.parent.name}/{path.name}": path for path in files if path.suffix in _KINDS}


def language_of(request: web.Request) -> str:
    """The cookie `language` when it names a catalogue, else the first of Accept-Language that does, else English."""
    wanted = [request.cookies.get("language", "")]
    wanted += [item.partition(";")[0].strip() for item in request.headers.get("Accept-Language", "").split(",")]
    for item in wanted:
        name = item.partition("-")[0].lower()
        if name in LANGUAGES:
            return name
    return "en"


@lru_cache(maxsize=len(LANGUAGES))
def words(language: str) -> dict[str, Any]:
    """The catalogue of a language: strings, or for what is counted a string for each plural form."""
    return json.loads((_FOLDER / "words" / f"{language}.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _marks() -> dict[str, str]:
    """The drawing of each channel that has one, as an SVG path."""
    return json.loads((_FOLDER / "marks.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(request: web.Request, template: str, status: int, **values: Any) -> web.Response:
    language = language_of(request)
    style = (_FOLDER / "styles" / "welcome.css").read_text(encoding="utf-8") if status == 401 else ""
    text = (
        _templates()
        .get_template(template)
        .render(
            language=language,
            direction="rtl" if language in _RIGHT_TO_LEFT else "ltr",
            words=words(language),
            marks=_marks(),
            style=style,
            **values,
        )
    )
    headers = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept-Language, Cookie"}
    if style:
        # Who has no credentials gets no other file, so this one style stands in the page and is named by its hash.
        digest = b64encode(sha256(style.encode()).digest()).decode()
        headers["Content-Security-Policy"] += f"; style-src-elem 'sha256-{digest}'"
    return web.Response(text=text, status=status, headers=headers, content_type="text/html")
