"""Fetching the file of a message, once the message is saved."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from channels.channel import FileGone, FileTooBig, Uploads
from channels.message import Attachment
from channels.whatsapp.content import remote_message
from channels.whatsapp.library import Library
from channels.whatsapp.limits import CONNECT_SECONDS_MAX, FETCH_SECONDS_MAX, FILE_BYTES_MAX
from channels.whatsapp.session import NotConnected, Session
from channels.whatsapp.states import unreachable


async def fetched(attachment: Attachment, session: Session, library: Library, uploads: Uploads) -> Attachment:
    """The same attachment with its file. Raises FileTooBig, FileGone, ChannelDown, NotAccepted."""
    if attachment.size_bytes is not None and attachment.size_bytes > FILE_BYTES_MAX:
        raise FileTooBig(attachment.name, FILE_BYTES_MAX)
    try:
        named = remote_message(attachment.remote or "", library.e2e.Message())
    except (ValueError, library.protobuf.DecodeError) as error:
        raise FileGone("the message names no file") from error
    try:
        await session.until_connected(CONNECT_SECONDS_MAX)
        data = await session.call("download_any", named, seconds_max=FETCH_SECONDS_MAX)
    except (NotConnected, TimeoutError) as error:
        raise unreachable(f"the file did not come ({error})") from error
    except library.errors.NeonizeError as error:
        raise FileGone(f"WhatsApp does not give the file out ({error})") from error
    return await uploads.save(attachment.kind, attachment.name, attachment.mime, _chunks(data), FILE_BYTES_MAX)


async def _chunks(data: bytes) -> AsyncGenerator[bytes]:
    yield data
