"""`POST /api/uploads`, and the uploads that a message names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from aiohttp import BodyPartReader, web

from channels.channel import FileTooBig, NotAccepted, Uploads
from channels.inapp.answers import ApiError, bad
from channels.inapp.limits import CHUNK_BYTES, FILES_MAX, UPLOAD_BYTES_MAX
from channels.message import Attachment


async def taken(request: web.Request, uploads: Uploads) -> list[dict[str, Any]]:
    """Saves the files of a multipart body as they come: [{"id", "name", "size"}]. Raises ApiError.

    What came before a file that is refused stays saved, and is not named.
    """
    if request.content_type != "multipart/form-data":
        bad("The body must be multipart/form-data with one file or more.")
    saved: list[Attachment] = []
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or not part.filename:
                continue
            if len(saved) == FILES_MAX:
                raise ApiError(413, "too_many", f"At most {FILES_MAX} files come with one request.")
            mime = part.headers.get("Content-Type", "").partition(";")[0].strip().lower() or None
            saved.append(await uploads.save("file", part.filename, mime, _chunks(part), UPLOAD_BYTES_MAX))
    except FileTooBig as error:
        raise ApiError(413, "file_too_large", f"{error}.", "Send a smaller file.") from error
    except NotAccepted as error:
        raise ApiError(503, "not_saved", f"{error}.", "Send the file again in a moment.") from error
    except (ValueError, AssertionError, EOFError) as error:
        raise ApiError(400, "bad_request", "The multipart body breaks off or is malformed.") from error
    if not saved:
        bad("There is no file in the body: a part with a file name is one.")
    return [{"id": file.upload_id, "name": file.name, "size": file.size_bytes} for file in saved]


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(CHUNK_BYTES):
        yield chunk


def attached(ids: object, uploads: Uploads) -> tuple[Attachment, ...]:
    """The saved files behind the `attachments` of a posted message. Raises ApiError."""
    if ids is None:
        return ()
    found = cast("list[object]", ids) if isinstance(ids, list) else [None]
    if not all(isinstance(one, str) for one in found):
        bad("`attachments` must be a list of the ids that /api/uploads gave.")
    if len(found) > FILES_MAX:
        bad(f"At most {FILES_MAX} files go with one message.")
    files: list[Attachment] = []
    for one in dict.fromkeys(cast("list[str]", found)):
        file = uploads.find(one)
        if file is None:
            raise ApiError(404, "no_upload", f"There is no upload `{one[:80]}`.", "Upload the file again.")
        files.append(file)
    return tuple(files)
