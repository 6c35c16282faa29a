"""The two ways a terminal chat reaches the agent: the running gateway, or the pipeline in this process."""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections.abc import Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from channels.registry import CHANNELS
from gateway.cli_options import Place
from gateway.client import Client, GatewayRefused, Json, quoted

T = TypeVar("T")
Event = tuple[str, Mapping[str, Any]]
CHANNEL = "inapp"
SILENCE_SECONDS = 15.0
NOT_OPEN = 404


class Line(Protocol):
    """A line to the agent. `events` begins before the first `post`, so that nothing is missed."""

    def post(self, text: str, conversation: str | None) -> tuple[str, str]:
        """Saves a message; its id and its conversation. `conversation` None: the latest open one; `new`: a new one."""
        ...

    def events(self) -> Iterator[Event]:
        """What happens, in all conversations, in order; now and then an event without a kind."""
        ...

    def messages(self, conversation: str, first: int) -> list[Json]:
        """The saved messages from number `first` on, in the JSON shape."""
        ...

    def consent(self, question_id: str, allow: bool) -> bool:
        """Answers a question of a turn; False when it is not open any more."""
        ...

    def stop(self, conversation: str) -> None:
        """Ends the running turn."""
        ...

    def renew(self) -> None:
        """After a break in the middle of an event: listens again from now on."""
        ...

    def close(self) -> None: ...


class GatewayLine:
    """Through the running gateway. Methods raise GatewayGone and GatewayRefused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listen()

    def _listen(self) -> None:
        self._events = self._client.events()
        self._iterator = iter(self._events)
        # The first event says that the place in the stream is taken.
        next(kind for kind, _ in self._iterator if kind)

    def post(self, text: str, conversation: str | None) -> tuple[str, str]:
        body = {"text": text, "key": secrets.token_hex(16)}
        answer = self._client.post(
            "/api/messages", body if conversation is None else body | {"conversation": conversation}
        )
        return answer["message_id"], answer["conversation"]

    def events(self) -> Iterator[Event]:
        return self._iterator

    def messages(self, conversation: str, first: int) -> list[Json]:
        return self._client.get(f"/api/conversations/{quoted(conversation)}", {"from": str(first)})["messages"]

    def consent(self, question_id: str, allow: bool) -> bool:
        try:
            self._client.post(f"/api/approvals/{quoted(question_id)}", {"approve": allow})
        except GatewayRefused as error:
            if error.status != NOT_OPEN:
                raise
            return False
        return True

    def stop(self, conversation: str) -> None:
        self._client.post("/api/stop", {"conversation": conversation})

    def renew(self) -> None:
        self._events.close()
        self._listen()

    def close(self) -> None:
        self._events.close()


class OwnLine:
    """The pipeline in this process: no page, no other channel, no clock; what waits for those is left alone.

    The pipeline has a thread and an event loop of its own, so that the terminal may block. The constructor raises
    what App.start raises.
    """

    def __init__(self, place: Place) -> None:
        from gateway.app import App

        self._app = App(place.home, _alone(place), serve=False)
        self._found: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pipeline", daemon=True)
        self._thread.start()
        try:
            self._wait(self._app.start())
        except BaseException:
            self._end()
            raise
        self._app.observers.add(lambda kind, data: self._found.put((kind, data)))

    def post(self, text: str, conversation: str | None) -> tuple[str, str]:
        return self._wait(self._post(text, conversation))

    async def _post(self, text: str, conversation: str | None) -> tuple[str, str]:
        from channels.message import InboundMessage

        key = secrets.token_hex(16)
        message = InboundMessage(
            channel=CHANNEL,
            chat_id=await self._app.backend.conversation_for_message(conversation, key),
            message_id=key,
            sender_id="owner",
            sender_name="Owner",
            text=text,
            sent_at=datetime.now(UTC),
            key=key,
        )
        accepted = await self._app.inbox.accept(message)
        return accepted.message_id, accepted.conversation_id

    def events(self) -> Iterator[Event]:
        while True:
            try:
                yield self._found.get(timeout=SILENCE_SECONDS)
            except queue.Empty:
                yield "", {}

    def messages(self, conversation: str, first: int) -> list[Json]:
        found = self._wait(self._app.backend.conversation(conversation, first, None))
        return list(found["messages"])

    def consent(self, question_id: str, allow: bool) -> bool:
        return self._wait(self._app.backend.approve(question_id, allow))

    def stop(self, conversation: str) -> None:
        self._wait(self._app.backend.stop(conversation))

    def renew(self) -> None:
        """Events come through a queue, which no break can tear."""

    def close(self) -> None:
        try:
            self._wait(self._app.stop())
        finally:
            self._end()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _alone(place: Place) -> Any:
    """The settings with every channel but the page's off, and no clock."""
    settings = place.settings
    channels = {name: settings.channel(name).model_copy(update={"enabled": name == CHANNEL}) for name in CHANNELS}
    return settings.model_copy(
        update={
            "channels": settings.channels.model_copy(update=channels),
            "heartbeat": settings.heartbeat.model_copy(update={"enabled": False}),
        }
    )


def line_to(place: Place) -> Line:
    """The running gateway where one runs, else this process."""
    client = place.client()
    return OwnLine(place) if client is None else GatewayLine(client)
