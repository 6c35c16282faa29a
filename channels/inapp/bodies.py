"""What requests bring: one JSON object, with the text of a message in it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any, cast

from aiohttp import web

from channels.inapp.answers import ApiError, bad
from channels.inapp.limits import BODY_BYTES_MAX, TEXT_BYTES_MAX


async def body_object(request: web.Request) -> Mapping[str, Any]:
    """The JSON object in the body, of at most BODY_BYTES_MAX. Raises ApiError."""
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise too_large()
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise too_large()
    try:
        value: Any = json.loads(bytes(body))
    except (ValueError, RecursionError):
        bad("The body is not JSON.")
    if not isinstance(value, dict):
        bad("The body must be a JSON object.")
    return cast("dict[str, Any]", value)


def message_text(text: str, *, may_be_empty: bool = False) -> str:
    """The text as it is saved. Raises ApiError for one that is too long, or shows nothing.

    JSON can carry what no text file, database or terminal takes: NUL, and halves of surrogate pairs.
    """
    text = text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if len(text.encode("utf-8")) > TEXT_BYTES_MAX:
        raise too_large()
    if not may_be_empty and all(letter.isspace() or unicodedata.category(letter) in {"Cc", "Cf"} for letter in text):
        raise ApiError(400, "empty", "The message is empty.", "Write something first.")
    return text


def too_large() -> ApiError:
    return ApiError(413, "too_large", "The message is larger than 1 MB.", "Send it in smaller parts.")
