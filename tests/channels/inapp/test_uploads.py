"""Files through the API: uploaded first, then named by a message."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from channels.inapp import uploads as taking
from tests.fakes.backend import FakeBackend

Client = aiohttp.ClientSession


def form(**files: bytes) -> aiohttp.FormData:
    data = aiohttp.FormData()
    data.add_field("note", "not a file")
    for name, content in files.items():
        data.add_field("file", content, filename=name.replace("_", "."), content_type="text/plain")
    return data


async def upload(client: Client, data: Any, **headers: str) -> tuple[int, Any]:
    async with client.post("/api/uploads", data=data, headers=headers) as response:
        return response.status, await response.json()


async def test_uploaded_files_come_with_the_message_that_names_them(client: Client, backend: FakeBackend) -> None:
    status, answer = await upload(client, form(a_txt=b"alpha", b_txt=b"beta!"))
    assert status == 200
    assert [(one["name"], one["size"]) for one in answer] == [("a.txt", 5), ("b.txt", 5)]
    body = {"text": "read these", "attachments": [one["id"] for one in answer]}
    async with client.post("/api/messages", json=body) as response:
        assert response.status == 202
    (message,) = backend.inbound
    assert [one.name for one in message.attachments] == ["a.txt", "b.txt"]
    assert all(one.path and one.path.startswith("uploads/") for one in message.attachments)
    assert (message.text, message.kind) == ("read these", "file")


async def test_a_file_needs_no_text(client: Client, backend: FakeBackend) -> None:
    _, (saved,) = await upload(client, form(a_png=b"png"))
    async with client.post("/api/messages", json={"attachments": [saved["id"]]}) as response:
        assert response.status == 202
    assert (backend.inbound[0].text, backend.inbound[0].kind) == ("", "photo")


async def test_an_unknown_upload_is_said_so(client: Client, backend: FakeBackend) -> None:
    body = {"text": "x", "attachments": ["261130-0123456789ab-gone.txt"]}
    async with client.post("/api/messages", json=body) as response:
        assert response.status == 404
        assert (await response.json())["error"]["code"] == "no_upload"
    assert backend.inbound == []


async def test_a_file_that_is_too_big_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "UPLOAD_BYTES_MAX", 1_000_000)
    status, answer = await upload(client, form(a_bin=b"x" * 1_000_001))
    assert (status, answer["error"]["code"]) == (413, "file_too_large")
    assert answer["error"]["message"] == "a.bin is larger than 1 MB."


async def test_too_many_files_are_refused(client: Client) -> None:
    status, answer = await upload(client, form(**{f"f{n}": b"x" for n in range(11)}))
    assert (status, answer["error"]["code"]) == (413, "too_many")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{}", "application/json"),
        (b"nothing here", "multipart/form-data; boundary=b"),
        (b"--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nhalf", "multipart/form-data; boundary=b"),
        (b"--b--\r\n", "multipart/form-data; boundary=b"),
        (b"x", "multipart/form-data"),
    ],
)
async def test_what_is_no_upload_is_refused(client: Client, data: bytes, kind: str) -> None:
    status, answer = await upload(client, data, **{"Content-Type": kind})
    assert (status, answer["error"]["code"]) == (400, "bad_request")


async def test_uploads_need_the_token(client: Client) -> None:
    async with client.post("/api/uploads", data=form(a=b"x"), headers={"Authorization": "Bearer no"}) as response:
        assert response.status == 401
