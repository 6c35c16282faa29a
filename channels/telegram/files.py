"""Files that came with messages: from the Bot API, or from the disk that it shares with us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from telegram.error import BadRequest

from channels.channel import FileGone, FileTooBig, Uploads
from channels.message import Attachment
from channels.telegram.limits import CHUNK_BYTES, DISK_BYTES_MAX, DOWNLOAD_BYTES_MAX
from channels.telegram.request import AiohttpRequest, RawBot
from channels.telegram.settings import PUBLIC_SERVER


class Files:
    """Fetches what an attachment's `remote`, a file id, stands for."""

    def __init__(self, request: AiohttpRequest, server: str, token: str, uploads: Uploads) -> None:
        self._request = request
        self._server = server
        self._token = token
        self._uploads = uploads
        self._is_own_server = server != PUBLIC_SERVER

    async def fetch(self, bot: RawBot, file: Attachment) -> Attachment:
        """The same attachment with its `path`. Raises FileTooBig, FileGone, NotAccepted, TelegramError."""
        if file.remote is None:
            raise FileGone(f"{file.name} has no id")
        if not self._is_own_server:
            _within(file, DOWNLOAD_BYTES_MAX)
        try:
            path = await bot.file_path(file.remote)
        except BadRequest as error:
            if "too big" in str(error).casefold():
                raise FileTooBig(file.name, DOWNLOAD_BYTES_MAX) from error
            raise FileGone(f"{file.name}: {error}") from error
        if not isinstance(path, str) or not path:
            raise FileGone(f"{file.name}: the server names no place for it")
        # With --local a Bot API server of one's own names a place on its disk, which may be ours too.
        is_on_disk = self._is_own_server and path.startswith("/")
        bytes_max = DISK_BYTES_MAX if is_on_disk else DOWNLOAD_BYTES_MAX
        _within(file, bytes_max)
        chunks = _from_disk(Path(path)) if is_on_disk else self._request.download(self._address(path))
        try:
            saved = await self._uploads.save(file.kind, file.name, file.mime, chunks, bytes_max)
        except BadRequest as error:
            raise FileGone(f"{file.name}: {error}") from error
        return Attachment(file.kind, saved.name, saved.path, saved.mime, saved.size_bytes, file.duration_seconds)

    def _address(self, path: str) -> str:
        return f"{self._server}/file/bot{self._token}/{path}"


def _within(file: Attachment, bytes_max: int) -> None:
    """Raises FileTooBig for a file that says itself that it is."""
    if (file.size_bytes or 0) > bytes_max:
        raise FileTooBig(file.name, bytes_max)


async def _from_disk(path: Path) -> AsyncIterator[bytes]:
    try:
        file = await asyncio.to_thread(path.open, "rb")
    except OSError as error:
        raise FileGone(f"{path.name} is on the disk of the Bot API server, and not to be read here") from error
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
