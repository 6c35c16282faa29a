"""From an answer to messages of WhatsApp: the text in parts, then each file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from channels.channel import ChannelContext, NotAccepted, SendError, SendRefused, SendRetry, SendUnknown
from channels.message import Attachment, OutboundMessage, Receipt
from channels.whatsapp.format import render
from channels.whatsapp.inbound import Receiver
from channels.whatsapp.library import Library
from channels.whatsapp.limits import FILE_BYTES_MAX, PHOTO_BYTES_MAX, SEND_SECONDS_MAX, SENDS_IN_FLIGHT_MAX
from channels.whatsapp.session import NotConnected, Session
from channels.whatsapp.states import send_error

LOG = logging.getLogger(__name__)

_AS_PHOTO = frozenset({"image/jpeg", "image/png"})
_AS_VIDEO = frozenset({"video/mp4", "video/3gpp"})
_AS_AUDIO = frozenset({"audio/mpeg", "audio/mp4", "audio/aac", "audio/amr", "audio/ogg"})


class Sender:
    def __init__(
        self, context: ChannelContext, library: Library, receiver: Receiver, now: Callable[[], datetime]
    ) -> None:
        self._workspace: Path = context.home / "workspace"
        self._library = library
        self._receiver = receiver
        self._now = now
        self._in_flight = asyncio.Semaphore(SENDS_IN_FLIGHT_MAX)

    async def send(self, message: OutboundMessage, chat: str, session: Session) -> Receipt:
        """Sends the parts that are not in `sent_ids` yet. Raises SendRetry, SendRefused, SendUnknown."""
        parts: list[str | Attachment] = [*render(message.text), *message.attachments]
        if not parts:
            raise SendRefused("there is no visible text in it")
        sent = list(message.sent_ids)
        at = self._now()
        for part in parts[len(sent) :]:
            reply_to = None if sent else message.reply_to
            built = await self._built(part, chat, reply_to, session, tuple(sent))
            message_id, at = await self._send_one(built, chat, session, tuple(sent))
            sent.append(message_id)
        return Receipt(tuple(sent), at)

    async def _built(
        self, part: str | Attachment, chat: str, reply_to: str | None, session: Session, sent_ids: tuple[str, ...]
    ) -> Any:
        context = self._context_info(chat, reply_to, await self._receiver.timer_seconds(chat))
        if isinstance(part, str):
            if context is None:
                return self._library.e2e.Message(conversation=part)
            text = self._library.e2e.ExtendedTextMessage(text=part, contextInfo=context)
            return self._library.e2e.Message(extendedTextMessage=text)
        try:
            return await self._file(part, context, session)
        except (NotConnected, TimeoutError) as error:
            raise self._error(error, sent_ids) from error
        except self._library.errors.NeonizeError as error:
            # Nothing was sent: the file goes first, the message that names it afterwards.
            raise self._error(NotConnected(str(error)), sent_ids) from error

    def _context_info(self, chat: str, reply_to: str | None, timer_seconds: int) -> Any:
        """The quote and the timer of a message; None when it has neither."""
        info = self._library.e2e.ContextInfo()
        quoted = self._receiver.quotable(chat, reply_to) if reply_to is not None else None
        if quoted is not None:
            info.stanzaID, info.participant = str(reply_to), quoted[0]
            info.quotedMessage.conversation = quoted[1]
        if timer_seconds:
            info.expiration = timer_seconds
        return info if any(True for _ in info.ListFields()) else None

    async def _file(self, file: Attachment, context: Any, session: Session) -> Any:
        """Uploads a workspace file. Raises SendRefused for one that cannot be read or is too big."""
        data = await asyncio.to_thread(self._read, file)
        kind = kind_of(file.mime, len(data))
        media = self._library.enums.MediaType
        types = {"image": media.MediaImage, "video": media.MediaVideo, "audio": media.MediaAudio}
        uploaded = await session.call(
            "upload", data, types.get(kind, media.MediaDocument), seconds_max=SEND_SECONDS_MAX
        )
        fields: dict[str, Any] = {
            "URL": uploaded.url,
            "directPath": uploaded.DirectPath,
            "mediaKey": uploaded.MediaKey,
            "fileEncSHA256": uploaded.FileEncSHA256,
            "fileSHA256": uploaded.FileSHA256,
            "fileLength": uploaded.FileLength,
            "mimetype": file.mime or "application/octet-stream",
        }
        if context is not None:
            fields["contextInfo"] = context
        e2e = self._library.e2e
        match kind:
            case "image":
                return e2e.Message(imageMessage=e2e.ImageMessage(**fields))
            case "video":
                return e2e.Message(videoMessage=e2e.VideoMessage(**fields))
            case "audio":
                return e2e.Message(audioMessage=e2e.AudioMessage(**fields, PTT=file.kind == "voice"))
            case _:
                document = e2e.DocumentMessage(**fields, fileName=file.name, title=file.name)
                return e2e.Message(documentMessage=document)

    def _read(self, file: Attachment) -> bytes:
        path = (self._workspace / (file.path or "")).resolve()
        if not file.path or not path.is_relative_to(self._workspace.resolve()):
            raise SendRefused(f"{file.name} is not a file of the workspace")
        try:
            if path.stat().st_size > FILE_BYTES_MAX:
                raise SendRefused(f"{file.name} is larger than {FILE_BYTES_MAX // 1_000_000} MB")
            return path.read_bytes()
        except OSError as error:
            raise SendRefused(f"{file.name} cannot be read ({error.strerror})") from error

    async def _send_one(
        self, message: Any, chat: str, session: Session, sent_ids: tuple[str, ...]
    ) -> tuple[str, datetime]:
        try:
            async with self._in_flight:
                answer = await session.call(
                    "send_message", self._receiver.jid(chat), message, seconds_max=SEND_SECONDS_MAX
                )
        except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
            raise self._error(error, sent_ids) from error
        if not answer.ID:
            raise SendUnknown("WhatsApp took it, but gave no id for it", sent_ids=sent_ids)
        at = self._now()
        try:
            await self._receiver.was_sent(answer.ID, at.isoformat())
        except NotAccepted as error:
            LOG.warning("That %s is our own could not be written down: %s", answer.ID, error)
        sent_at = datetime.fromtimestamp(answer.Timestamp, UTC) if answer.Timestamp > 0 else at
        return answer.ID, min(sent_at, at)

    @staticmethod
    def _error(error: Exception, sent_ids: tuple[str, ...]) -> SendError:
        if isinstance(error, NotConnected):
            return SendRetry(str(error), sent_ids=sent_ids)
        return send_error(f"timed out: {error}" if isinstance(error, TimeoutError) else str(error), sent_ids)


def kind_of(mime: str | None, size_bytes: int) -> str:
    """What a file is sent as: `image`, `video`, `audio`, or `document` for all that WhatsApp cannot show."""
    if size_bytes > PHOTO_BYTES_MAX:
        return "document"
    kinds = {"image": _AS_PHOTO, "video": _AS_VIDEO, "audio": _AS_AUDIO}
    return next((kind for kind, types in kinds.items() if (mime or "").partition(";")[0] in types), "document")
