"""Files that came with messages: from the Bot API, or from the disk that it shares with us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from telegram.error import BadRequest

from channels.channel import FileGone, FileTooBig, Uploads
from channels.message import Attachment
from channels.telegram.limits import CHUNK_BYTES, DOWNLOAD_BYTES_MAX, OWN_SERVER_DOWNLOAD_BYTES_MAX
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
        self._bytes_max = OWN_SERVER_DOWNLOAD_BYTES_MAX if self._is_own_server else DOWNLOAD_BYTES_MAX

    async def fetch(self, bot: RawBot, file: Attachment) -> Attachment:
        """The same attachment with its `path`. Raises FileTooBig, FileGone, NotAccepted, TelegramError."""
        if file.remote is None:
            raise FileGone(f"{file.name} has no id")
        if (file.size_bytes or 0) > self._bytes_max:
            raise FileTooBig(file.name, self._bytes_max)
        try:
            path = await bot.file_path(file.remote)
        except BadRequest as error:
            if "too big" in str(error).casefold():
                raise FileTooBig(file.name, self._bytes_max) from error
            raise FileGone(f"{file.name}: {error}") from error
        if not isinstance(path, str) or not path:
            raise FileGone(f"{file.name}: the server names no place for it")
        try:
            chunks = self._chunks(path)
            saved = await self._uploads.save(file.kind, file.name, file.mime, chunks, self._bytes_max)
        except BadRequest as error:
            raise FileGone(f"{file.name}: {error}") from error
        return Attachment(file.kind, saved.name, saved.path, saved.mime, saved.size_bytes, file.duration_seconds)

    def _chunks(self, path: str) -> AsyncIterator[bytes]:
        # With --local a Bot API server of one's own names a place on its disk, which may be ours too.
        if self._is_own_server and path.startswith("/"):
            return _from_disk(Path(path))
        return self._request.download(f"{self._server}/file/bot{self._token}/{path}")


async def _from_disk(path: Path) -> AsyncIterator[bytes]:
    try:
        file = await asyncio.to_thread(path.open, "rb")
    except OSError as error:
        raise FileGone(f"{path.name} is on the disk of the Bot API server, and not to be read here") from error
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
