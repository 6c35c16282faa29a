"""What the in-app channel needs from the gateway, handed in at construction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Json = Mapping[str, Any]


class UnknownConversation(Exception):
    """No conversation has this id."""


class BadQuery(Exception):
    """A value of a query is not allowed; `str()` is one sentence: which, and what is allowed."""


class NotDone(Exception):
    """What was asked for cannot be done now; `str()` is one sentence."""


class Backend(Protocol):
    """The owner's view of the running gateway. Every result is the JSON shape of docs/formats.md.

    `conversations`, `search` and `usage` raise BadQuery.
    """

    async def conversation_for_message(self, wanted: str | None, key: str) -> str:
        """The id of the conversation a posted message goes to.

        `wanted` None: where `key` was posted before, else the latest open in-app conversation, else a new id.
        `new`: where `key` was posted before, else a new id. Any other: that id, or raises UnknownConversation.
        """
        ...

    async def conversations(self, query: Mapping[str, str]) -> Json: ...

    async def conversation(self, conversation_id: str, first: int | None, last: int | None) -> Json:
        """Raises UnknownConversation."""
        ...

    async def remove_conversation(self, conversation_id: str) -> Json:
        """Stops what runs in it and takes all of it out for good: `{"messages", "kept"}`.

        Raises UnknownConversation, and NotDone while a message of it is in use.
        """
        ...

    async def search(self, query: Mapping[str, str]) -> Json: ...

    async def usage(self, query: Mapping[str, str]) -> Json: ...

    async def status(self) -> Json: ...

    async def index_status(self) -> Json:
        """Raises NotDone."""
        ...

    async def index_work(self, what: Literal["update", "rebuild", "check"]) -> Json:
        """A rebuild is only begun. Raises NotDone."""
        ...

    async def runs(self) -> Json: ...

    async def channels(self, *, probe: bool) -> Json:
        """How the channels are; `probe`: after those that can were asked for a sign of life."""
        ...

    def link_state(self, name: str) -> Json:
        """How far a channel's linking has come: channel, state, qr, code, detail, version. Raises LookupError."""
        ...

    def begin_link(self, name: str, phone: str | None) -> Json:
        """Asks for a QR or, with a phone, for a code. Raises LookupError, and ValueError: what a number looks like."""
        ...

    async def logout(self, name: str) -> bool:
        """Gives a channel's account up; False when the platform could not be told. Raises LookupError, NotDone."""
        ...

    async def jobs(self) -> Json: ...

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None) -> None:
        """Starts a job of the clock by hand. Raises LookupError for a name that no job has, NotDone, and BadQuery."""
        ...

    async def switch_job(self, name: str, on: bool, kind: str | None = None) -> None:
        """Switches a job of the clock on or off. Raises LookupError for a name that no job has, and BadQuery."""
        ...

    async def retry_delivery(self, key: str) -> bool:
        """Sends a reply again; False when no reply that could be sent again has this key."""
        ...

    async def stop(self, conversation_id: str) -> bool:
        """Ends the running turn of that conversation; False when none runs."""
        ...

    async def approve(self, question_id: str, allow: bool) -> bool:
        """Answers an open question of a turn to the owner; False when it is not open (any more)."""
        ...

    async def events_since(self, version: int) -> list[tuple[int, Json]]:
        """`message` events of everything saved after `version`, oldest first, each with its own version."""
        ...

    async def version(self) -> int:
        """The version of the newest saved change."""
        ...

    def workspace_file(self, path: str) -> Any:
        """The `pathlib.Path` of a workspace file that may be shown; raises FileNotFoundError for all others."""
        ...

    def log_text(self, path: Any) -> str | None:
        """The text of a workspace file (as `workspace_file` gives it) that is a read log, without what was removed from
        it; None: it is none."""
        ...
