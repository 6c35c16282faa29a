"""Reads the pictures of a prompt from the workspace, in the form services take."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.limits import PICTURE_BYTES_MAX, PICTURES_MAX
from agent.types import Message, Prompt

# The first bytes of the four formats that all services take.
_SIGNATURES = (
    ("image/png", b"\x89PNG\r\n\x1a\n", b""),
    ("image/jpeg", b"\xff\xd8\xff", b""),
    ("image/gif", b"GIF8", b""),
    ("image/webp", b"RIFF", b"WEBP"),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture's media type and its bytes as base64."""

    media_type: str
    data: str


def read_all(workspace: Path | None, prompt: Prompt) -> Mapping[str, Picture]:
    """The newest pictures of the prompt's messages by their path. Left out: what is no picture a service takes, too
    big, not there, or outside the workspace."""
    if workspace is None:
        return {}
    paths = dict.fromkeys(path for message in reversed(prompt.messages) for path in message.images)
    found: dict[str, Picture] = {}
    for path in paths:
        picture = _read(workspace.resolve(), path)
        if picture is not None:
            found[path] = picture
        if len(found) == PICTURES_MAX:
            break
    return found


def split(message: Message, found: Mapping[str, Picture]) -> tuple[list[Picture], str]:
    """The pictures of a message, and its text with a line for each picture the model does not get."""
    missing = [path for path in message.images if path not in found]
    lines = [f"[The picture {path} is not shown here.]" for path in missing]
    text = "\n".join([*lines, message.text]) if lines else message.text
    return [found[path] for path in message.images if path in found], text


def _read(workspace: Path, path: str) -> Picture | None:
    try:
        file = (workspace / path).resolve()
        if not file.is_relative_to(workspace) or not file.is_file() or file.stat().st_size > PICTURE_BYTES_MAX:
            return None
        data = file.read_bytes()
    except (OSError, ValueError):
        return None
    for media_type, head, at_eight in _SIGNATURES:
        if data.startswith(head) and data[8:].startswith(at_eight):
            return Picture(media_type, base64.b64encode(data).decode("ascii"))
    return None
