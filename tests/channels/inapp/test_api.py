"""The API as a program uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from channels.channel import NotAccepted
from channels.message import Address, OutboundMessage
from tests.fakes.backend import FakeBackend, PageServer

Client = aiohttp.ClientSession


async def post(client: Client, body: Any, path: str = "/api/messages") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(path, data=BytesIO(data)) as response:
        return response.status, await response.json()


async def get(client: Client, path: str) -> tuple[int, Any]:
    async with client.get(path) as response:
        return response.status, await response.json()


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, Any]]:
    """(id, kind, data) of each event."""
    fields: dict[str, str] = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "data":
            yield fields["id"], fields["event"], json.loads(value)
        fields[name] = value


async def test_a_post_is_answered_after_it_was_accepted(client: Client, backend: FakeBackend) -> None:
    status, answer = await post(client, {"text": " Hello\n"})
    assert status == 202
    assert answer == {"message_id": "m-c1-1", "conversation": "c1"}
    (message,) = backend.inbound
    assert (message.channel, message.chat_id, message.text) == ("inapp", "c1", " Hello\n")
    assert message.address.session_key == "inapp:c1"


async def test_a_message_counts_as_the_last_word_heard_once_it_is_saved(client: Client, server: PageServer) -> None:
    before = server.health.receipts
    await post(client, {"text": "hello"})
    assert server.health.receipts == before + 1
    await post(client, {"text": ""})
    assert server.health.receipts == before + 1


async def test_where_a_message_goes(client: Client) -> None:
    assert (await post(client, {"text": "a"}))[1]["conversation"] == "c1"
    assert (await post(client, {"text": "b"}))[1]["conversation"] == "c1"
    assert (await post(client, {"text": "c", "conversation": "new"}))[1]["conversation"] == "c2"
    assert (await post(client, {"text": "d", "conversation": "c1"}))[1]["conversation"] == "c1"
    status, answer = await post(client, {"text": "e", "conversation": "nowhere"})
    assert (status, answer["error"]["code"]) == (404, "no_conversation")


@pytest.mark.parametrize("conversation", [None, "new"])
async def test_a_repeated_key_is_the_same_message(
    client: Client, backend: FakeBackend, conversation: str | None
) -> None:
    body = {"text": "once", "key": "k1", "conversation": conversation}
    answers = [await post(client, body) for _ in range(3)]
    assert answers == [answers[0]] * 3
    assert len(backend.inbound) == 1


async def test_messages_without_a_key_are_all_taken(client: Client, backend: FakeBackend) -> None:
    await asyncio.gather(*(post(client, {"text": "same"}) for _ in range(5)))
    assert len({message.key for message in backend.inbound}) == 5


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": ""}, "empty"),
        ({"text": " \n\t\u200b\u200f"}, "empty"),
        ({"text": "\0"}, "empty"),
        ({}, "bad_request"),
        ({"text": 3}, "bad_request"),
        ({"text": "x", "conversation": 3}, "bad_request"),
        ({"text": "x", "key": ""}, "bad_request"),
        ({"text": "x", "key": "k" * 201}, "bad_request"),
        ({"text": "x", "attachments": "u1"}, "bad_request"),
        ({"text": "x", "attachments": [3]}, "bad_request"),
        ([], "bad_request"),
        (b"{", "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b"[" * 100_000, "bad_request"),
    ],
)
async def test_what_cannot_be_taken_is_refused_with_a_reason(
    client: Client, backend: FakeBackend, body: Any, code: str
) -> None:
    status, answer = await post(client, body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert set(answer["error"]) == {"code", "message", "remedy"}
    assert backend.inbound == []


async def test_broken_letters_are_replaced_and_whole_ones_kept(client: Client, backend: FakeBackend) -> None:
    body = rb'{"text": "a\u0000b \ud800 \udc00\ud800 \ud83d\ude00 \u0628"}'
    assert (await post(client, body))[0] == 202
    assert backend.inbound[0].text == "ab \ufffd \ufffd\ufffd 😀 ب"


async def test_one_megabyte_is_taken_in_any_spelling_and_more_is_not(client: Client, backend: FakeBackend) -> None:
    megabyte = "x" * 1024 * 1024
    assert (await post(client, {"text": megabyte}))[0] == 202
    escaped = b'{"text": "' + b"\\u0078" * 1024 * 1024 + b'"}'
    assert (await post(client, escaped))[0] == 202
    assert [message.text == megabyte for message in backend.inbound] == [True, True]
    assert (await post(client, {"text": megabyte + "x"}))[1]["error"]["code"] == "too_large"
    async with client.post("/api/messages", data=BytesIO(b" " * (7 * 1024 * 1024))) as response:
        assert response.status == 413


async def test_what_could_not_be_saved_is_said_and_may_come_again(client: Client, backend: FakeBackend) -> None:
    backend.refusal = NotAccepted("The disk is full.")
    async with client.post("/api/messages", json={"text": "a", "key": "k"}) as response:
        assert response.status == 503
        assert response.headers["Retry-After"]
        error = (await response.json())["error"]
    assert error["message"] == "The disk is full."
    assert error["remedy"]
    backend.refusal = None
    assert (await post(client, {"text": "a", "key": "k"}))[0] == 202


async def test_before_the_gateway_listens_a_post_is_503(server: PageServer, client: Client) -> None:
    await server.stop()
    server.accepting = False
    await server.start()
    assert (await post(client, {"text": "early"}))[1]["error"]["code"] == "starting"
    server.listen()
    await asyncio.sleep(0)
    assert server.health.last == ("connected", "")
    assert (await post(client, {"text": "early"}))[0] == 202


async def test_a_conversation_is_read_in_ranges_and_as_html_only_when_asked(
    client: Client, backend: FakeBackend
) -> None:
    backend.add_conversation("c", title="T")
    for text in ("a", "b <i>", "c"):
        backend.save("c", "assistant", text)
    _, found = await get(client, "/api/conversations/c?from=2&to=2")
    assert [message["text"] for message in found["messages"]] == ["b <i>"]
    assert "html" not in found["messages"][0]
    _, found = await get(client, "/api/conversations/c?from=2&to=2&html=1")
    assert found["messages"][0]["html"] == '<p dir="ltr">b &lt;i&gt;</p>\n'
    assert (await get(client, "/api/conversations/c?from=x"))[0] == 400
    assert (await get(client, "/api/conversations/other"))[0] == 404


async def test_lists_search_and_state(client: Client, backend: FakeBackend) -> None:
    backend.add_conversation("c", title="T")
    backend.save("c", "user", "a")
    backend.hits = [{"ref": "conversation:c#1", "snippet": "a"}]
    _, found = await get(client, "/api/conversations")
    assert [(item["id"], item["message_count"]) for item in found["conversations"]] == [("c", 1)]
    assert (await get(client, "/api/conversations?limit=many"))[1]["error"]["code"] == "bad_query"
    assert (await get(client, "/api/search?query=A"))[1]["hits"][0]["ref"] == "conversation:c#1"
    assert (await get(client, "/api/search?query=%20"))[0] == 400
    assert (await get(client, "/api/usage?period=week"))[1]["period"] == "week"
    assert (await get(client, "/api/usage?period=yesteryear"))[1]["error"]["code"] == "bad_query"
    assert (await get(client, "/api/status"))[1]["version"] == "0.1.0"
    assert (await get(client, "/api/runs"))[1] == {"runs": []}


async def test_a_conversation_is_deleted_once_and_not_while_it_is_answered(
    client: Client, backend: FakeBackend
) -> None:
    backend.add_conversation("c")
    backend.save("c", "user", "hello", state="running")
    refused = await client.delete("/api/conversations/c")
    assert (refused.status, (await refused.json())["error"]["code"]) == (409, "in_use")
    backend.saved["c"]["messages"][0]["state"] = "answered"
    other_site = await client.delete("/api/conversations/c", headers={"Origin": "https://elsewhere.example"})
    assert other_site.status == 403
    gone = await client.delete("/api/conversations/c")
    assert (gone.status, await gone.json()) == (200, {"messages": 1, "kept": []})
    assert (await client.delete("/api/conversations/c")).status == 404
    assert (await client.get("/api/conversations/c")).status == 404


async def test_stop(client: Client, backend: FakeBackend) -> None:
    backend.add_conversation("c")
    assert await post(client, {"conversation": "c"}, "/api/stop") == (200, {"stopped": True})
    assert backend.stopped == ["c"]
    assert (await post(client, {"conversation": "x"}, "/api/stop"))[0] == 404
    assert (await post(client, {}, "/api/stop"))[0] == 400


async def test_consent(client: Client, backend: FakeBackend) -> None:
    for _ in range(2):
        backend.ask("c", "rm -r old")
    assert await post(client, {"approve": True}, "/api/approvals/q1") == (200, {"answered": True})
    assert await post(client, {"approve": False}, "/api/approvals/q2") == (200, {"answered": True})
    status, body = await post(client, {"approve": True}, "/api/approvals/q1")
    assert (status, body["error"]["code"]) == (404, "not_open")
    for wrong in ({}, {"approve": "yes"}, {"approve": 1}, {"approve": None}):
        assert (await post(client, wrong, "/api/approvals/q2"))[0] == 400
    assert backend.answers == [("q1", True), ("q2", False)]


async def test_a_stranger_cannot_consent(stranger: Client, backend: FakeBackend) -> None:
    backend.ask("c", "rm -r old")
    assert (await post(stranger, {"approve": True}, "/api/approvals/q1"))[0] == 401
    assert backend.answers == []


@pytest.mark.parametrize(
    ("name", "kind", "disposition"),
    [
        ("notes.md", "text/plain; charset=utf-8", "inline"),
        ("picture.png", "image/png", "inline"),
        ("page.html", "application/octet-stream", "attachment"),
        ("drawing.svg", "application/octet-stream", "attachment"),
        ("تقرير.pdf", "application/octet-stream", "attachment"),
    ],
)
async def test_files_that_could_run_are_downloads(
    client: Client, backend: FakeBackend, name: str, kind: str, disposition: str
) -> None:
    (backend.workspace / name).write_text("content", encoding="utf-8")
    async with client.get(f"/api/files/{name}") as response:
        assert await response.text() == "content"
        assert response.headers["Content-Type"] == kind
        assert response.headers["Content-Disposition"].startswith(disposition)
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_no_file_outside_of_the_workspace(client: Client, server: PageServer) -> None:
    (server.home / "config.toml").write_text("secret", encoding="utf-8")
    for path in ("none.txt", "..%2Fconfig.toml", "%2Fetc%2Fpasswd", "../config.toml"):
        async with client.get(f"{server.url}/api/files/{path}") as response:
            assert response.status == 404


async def test_a_posted_message_and_its_answer_come_as_events(client: Client) -> None:
    async with client.get("/api/events") as response, asyncio.timeout(10):
        assert response.content_type == "text/event-stream"
        stream = events(response)
        assert (await anext(stream))[1] == "status"
        await post(client, {"text": "hi"})
        heard = [await anext(stream)]
        while heard[-1][1] != "done":
            heard.append(await anext(stream))
    kinds = [kind for _, kind, _ in heard]
    assert kinds[0] == "message"
    assert kinds[-2:] == ["message", "done"]
    text = "".join(data["text"] for _, kind, data in heard if kind == "delta")
    assert text == heard[-1][2]["message"]["text"] == "Hello from **Hudhud**."
    assert {data["conversation"] for _, _, data in heard} == {"c1"}
    assert len({event_id for event_id, _, _ in heard}) == len(heard)


async def test_events_go_on_after_a_restart_of_the_server(
    client: Client, server: PageServer, backend: FakeBackend
) -> None:
    backend.add_conversation("c")
    async with client.get("/api/events") as response, asyncio.timeout(10):
        stream = events(response)
        await anext(stream)
        backend.save("c", "user", "one")
        last = (await anext(stream))[0]
    await server.stop()
    backend.save("c", "user", "two")
    await server.start()
    async with client.get("/api/events", headers={"Last-Event-ID": last}) as response, asyncio.timeout(10):
        stream = events(response)
        missed = await anext(stream)
    assert missed[2]["message"]["text"] == "two"


async def test_a_saved_reply_is_a_delivered_one(server: PageServer) -> None:
    receipt = await server.channel.send(OutboundMessage("k", Address("inapp", "c"), "text"))
    assert receipt.message_ids == ("k",)
    assert server.channel.info.saved_is_sent
