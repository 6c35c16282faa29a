"""Files that people send: each under a safe name of its own in `uploads/`, whole or not there at all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import unicodedata
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from mimetypes import guess_extension, guess_type
from pathlib import Path

from channels.channel import FileTooBig, NotAccepted
from channels.message import Attachment, AttachmentKind

FOLDER = "uploads"
NAME_BYTES_MAX = 255
BLOCK_BYTES = 256 * 1024
_ID = re.compile(r"\d{6}-[0-9a-f]{12}-(?P<name>[^/\0]+)", re.DOTALL)
_UNSAFE = frozenset('/\\:*?"<>|%')
_ENDING_CHARS_MAX = 16


class UploadFolder:
    """`channels.channel.Uploads` on the folder `uploads/` of a workspace."""

    def __init__(self, workspace: Path, now: Callable[[], datetime]) -> None:
        self._folder = workspace / FOLDER
        self._now = now

    def clean(self) -> None:
        """At start: takes away what a crash left of files that never became whole."""
        for left in self._folder.glob(".*.part"):
            with contextlib.suppress(OSError):
                left.unlink()

    async def save(
        self, kind: AttachmentKind, name: str, mime: str | None, chunks: AsyncIterator[bytes], size_bytes_max: int
    ) -> Attachment:
        shown = safe_name(name, kind, mime)
        head = f"{self._now():%y%m%d}-{secrets.token_hex(6)}-"
        path = self._folder / f"{head}{_cut(shown, NAME_BYTES_MAX - len(head))}"
        # Hidden until it is whole: neither indexed nor opened.
        part = self._folder / f".{head}.part"
        try:
            try:
                size_bytes = await self._write(part, chunks, shown, size_bytes_max)
                await asyncio.to_thread(_publish, part, path)
            finally:
                # Nobody waits for this one: after the rename it is not there any more.
                with contextlib.suppress(OSError):
                    part.unlink()
        except OSError as error:
            raise NotAccepted(f"{FOLDER}/ cannot be written ({error.strerror})") from error
        return Attachment(kind, shown, f"{FOLDER}/{path.name}", mime or guess_type(shown)[0], size_bytes)

    async def _write(self, part: Path, chunks: AsyncIterator[bytes], name: str, size_bytes_max: int) -> int:
        size_bytes = 0
        block = bytearray()
        file = await asyncio.to_thread(_create, part)
        try:
            async for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > size_bytes_max:
                    raise FileTooBig(name, size_bytes_max)
                block += chunk
                if len(block) >= BLOCK_BYTES:
                    await asyncio.to_thread(_append, file, bytes(block))
                    block.clear()
            await asyncio.to_thread(_append, file, bytes(block), last=True)
        finally:
            os.close(file)
        return size_bytes

    def find(self, upload_id: str) -> Attachment | None:
        found = _ID.fullmatch(upload_id)
        path = self._folder / upload_id
        try:
            if found is None or path.is_symlink() or not path.is_file():
                return None
            size_bytes = path.stat().st_size
        except (OSError, ValueError):
            return None
        mime = guess_type(upload_id)[0]
        return Attachment(kind_of(mime), found["name"], f"{FOLDER}/{upload_id}", mime, size_bytes)


def kind_of(mime: str | None) -> AttachmentKind:
    """What kind of attachment a file of this type is."""
    kinds: dict[str, AttachmentKind] = {"image": "photo", "audio": "audio", "video": "video"}
    return kinds.get((mime or "").partition("/")[0], "file")


def safe_name(name: str, kind: str, mime: str | None) -> str:
    """A name that no file system, terminal or prompt misreads; letters of every script stay.

    Paths lose their folders, control and direction marks are left out, reserved signs become `_`. Without an ending
    it gets the one of its type. Never empty, never hidden, at most NAME_BYTES_MAX bytes.
    """
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rstrip("/").rpartition("/")[2]
    kept = "".join(
        "_" if letter in _UNSAFE else " " if letter.isspace() else letter
        for letter in last
        if unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn"} or letter.isspace()
    )
    plain = " ".join(kept.split()).strip(". ") or kind
    if "." not in plain:
        plain += guess_extension(mime or "") or ""
    return _cut(plain, NAME_BYTES_MAX)


def _cut(name: str, bytes_max: int) -> str:
    """At most so many bytes of UTF-8, between characters; a short ending stays."""
    if len(name.encode()) <= bytes_max:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending) > _ENDING_CHARS_MAX:
        stem, ending = name, ""
    tail = f"{dot}{ending}" if ending else ""
    return stem.encode()[: bytes_max - len(tail.encode())].decode(errors="ignore") + tail


def _create(part: Path) -> int:
    part.parent.mkdir(parents=True, exist_ok=True)
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _append(file: int, block: bytes, *, last: bool = False) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(file, view) :]
    if last:
        os.fsync(file)


def _publish(part: Path, path: Path) -> None:
    """The whole file appears under its name, durably. The name is new: it holds 48 random bits."""
    os.rename(part, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
