"""Messages to known people. Who is known, and how a message gets there, is the program's business: a Messenger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent.limits import CAPTION_CHARS_MAX, SENT_TEXT_CHARS_MAX
from agent.lines import one_line
from agent.places import inside, shown
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction

NAMES_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Recipient:
    """A chat the agent may write to. `address` is `<channel>:<chat>`; `names` are what its person is called."""

    address: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message. `waiting`: it is on its way and goes on without being asked again. `unknown`: the line
    broke after sending. `reason` is one sentence for the last two states."""

    state: Literal["sent", "waiting", "unknown", "failed"]
    reason: str = ""


class Messenger(Protocol):
    """Sends what the model writes."""

    async def recipients(self) -> Sequence[Recipient]:
        """Every chat of a known person: the owner's and those of the people the owner lets in."""
        ...

    async def here(self, session_key: str) -> Recipient | None:
        """The chat of a session; None when nothing can be sent there (a run of the clock)."""
        ...

    async def send(self, key: str, address: str, text: str, file: str | None = None) -> Delivery:
        """One message to a recipient's address, with a file of the workspace or without. The same key is the same
        message: it is never sent twice. Returns when the message has arrived or failed, or after some seconds as
        `waiting`."""
        ...


class Messages:
    """The tool's code. Raises ToolFailure with one sentence."""

    def __init__(self, messenger: Messenger, workspace: Path) -> None:
        self._messenger = messenger
        self._workspace = workspace

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {"send_message": self.send_message, "send_file": self.send_file}

    async def send_message(self, ctx: CallContext, args: JsonObject) -> str:
        text = str(args.get("text", ""))
        if not text.strip():
            raise ToolFailure("The text is empty. Nothing was sent.")
        if len(text) > SENT_TEXT_CHARS_MAX:
            raise ToolFailure(f"The text has {len(text):,} characters; at most {SENT_TEXT_CHARS_MAX:,} are sent.")
        return await self._send(ctx, args, text, None)

    async def send_file(self, ctx: CallContext, args: JsonObject) -> str:
        path = inside(self._workspace, str(args.get("path", "")))
        caption = str(args.get("caption") or "")
        if not path.is_file():
            raise ToolFailure(f"There is no file {shown(self._workspace, path)}. Nothing was sent.")
        if len(caption) > CAPTION_CHARS_MAX:
            raise ToolFailure(
                f"The caption has {len(caption):,} characters; at most {CAPTION_CHARS_MAX:,} go under a file. "
                "Nothing was sent."
            )
        return await self._send(ctx, args, caption, shown(self._workspace, path))

    async def _send(self, ctx: CallContext, args: JsonObject, text: str, file: str | None) -> str:
        recipient = await self._recipient(ctx, str(args.get("to") or "").strip())
        sent = await self._messenger.send(f"send:{ctx.turn_id}:{ctx.call_id}", recipient.address, text, file)
        whom = _whom(recipient)
        match sent.state:
            case "sent":
                return f"Sent to {whom}."
            case "waiting":
                return f"On its way to {whom}; it is sent as soon as that is possible. Do not send it again."
            case "unknown":
                raise ToolFailure(f"Nobody knows whether it reached {whom}: {sent.reason} It is not sent again.")
            case "failed":
                raise ToolFailure(f"It did not reach {whom}: {sent.reason}")

    async def _recipient(self, ctx: CallContext, to: str) -> Recipient:
        """The chat meant: this one, an address, or the one chat of a name. Raises ToolFailure."""
        known = await self._messenger.recipients()
        if not to:
            here = await self._messenger.here(ctx.session_key)
            found = [] if here is None else [here]
        else:
            found = [one for one in known if one.address == to]
        if not found and to:
            found = [one for one in known if any(name.casefold() == to.casefold() for name in one.names)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ToolFailure(f"{_said(to)} has several chats: {_list(found)}. Give one of these addresses.")
        what = f"{_said(to)} is not known" if to else "This chat takes no messages of its own"
        raise ToolFailure(f"{what}. Messages go to: {_list(known) or 'nobody yet'}. Nothing was sent.")


def _whom(recipient: Recipient) -> str:
    name = one_line(recipient.names[0], 60) if recipient.names else ""
    return f"{name} ({recipient.address})" if name else recipient.address


def _list(recipients: Sequence[Recipient]) -> str:
    names = ", ".join(map(_whom, recipients[:NAMES_SHOWN_MAX]))
    left = len(recipients) - NAMES_SHOWN_MAX
    return f"{names} and {left} more" if left > 0 else names


def _said(to: str) -> str:
    return f'"{one_line(to, 60)}"'
