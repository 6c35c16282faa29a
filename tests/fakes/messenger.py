"""People one can write to, in the place of the program's channels."""

from __future__ import annotations

from collections.abc import Sequence

from agent.capabilities.messages.tools import Delivery, Recipient


class FakeMessenger:
    """Notes what is sent; `state` is what becomes of it."""

    def __init__(self, *known: Recipient) -> None:
        self.known = known
        self.state = Delivery("sent")
        self.sent: list[tuple[str, str, str]] = []
        self.files: list[str] = []

    async def recipients(self) -> Sequence[Recipient]:
        return self.known

    async def here(self, session_key: str) -> Recipient | None:
        found = [one for one in self.known if f"{session_key}:".startswith(f"{one.address}:")]
        return found[0] if found else None

    async def send(self, key: str, address: str, text: str, file: str | None = None) -> Delivery:
        self.sent.append((key, address, text))
        if file is not None:
            self.files.append(file)
        return self.state
