"""How the API answers: JSON, and one shape for everything that was not done."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from aiohttp import web

from channels.inapp.security import HEADERS


class ApiError(Exception):
    """An answer that is not the wanted one: status, and the error shape of docs/formats.md."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, "remedy": remedy}}


def json_answer(value: Mapping[str, Any] | Sequence[Any], status: int = 200) -> web.Response:
    """A JSON document, never kept by a cache."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return web.Response(
        body=text.encode("utf-8", "replace"),
        status=status,
        headers={**HEADERS, "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"},
    )


def bad(sentence: str) -> NoReturn:
    """Raises the ApiError for a request that is not as it should be."""
    raise ApiError(400, "bad_request", sentence)
