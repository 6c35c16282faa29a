"""Open questions to the owner: asked where the owner is, answered there or on the page, no answer means no."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agent.types import Person, Question, ToolFailure
from channels.channel import Channel
from channels.message import Address, Choice, InboundMessage
from gateway.events import saved_event
from gateway.limits import APPROVAL_SECONDS
from gateway.observe import Observers
from gateway.outbox import QUESTION, Outbox, Told
from gateway.people import People
from gateway.sentences import Language, sentence
from gateway.store import Store
from gateway.store.types import Delivery, DeliveryState, Rights

LOG = logging.getLogger(__name__)
Remove = Callable[[str, Sequence[int]], Awaitable[int]]

ACTION = "approval"
"""Buttons come back as `approval:<id>:yes` or `approval:<id>:no`."""

_YES = frozenset({"1", "yes", "y", "ok", "allow", "نعم", "اجل", "أجل", "موافق", "١"})
_NO = frozenset({"2", "no", "n", "deny", "لا", "كلا", "٢"})
_NUMBERS = frozenset({"1", "2", "١", "٢"})
_DRESS = " \t\r\n.!،\u200e\u200f"
"""Around a plain answer; it counts as nothing."""
_MARKUP = re.compile(r"[\\`*_~\[\]<>#|]")

State = Literal["open", "allowed", "denied", "expired"]


@dataclass(slots=True)
class OpenQuestion:
    """A question that waits. `where` is the chat it was asked in; `conversation_id` and `turn_id` are what it is about.

    `delivery`: how far it has come on its way there.
    """

    id: str
    what: str
    reason: str
    asked_by: str
    where: Address
    conversation_id: str
    turn_id: str
    answer: asyncio.Future[bool]
    delivery: DeliveryState = "planned"

    @property
    def key(self) -> str:
        """The key of its delivery."""
        return f"{QUESTION}{self.turn_id}:{self.id}"

    def told(self, state: DeliveryState) -> None:
        self.delivery = state

    @property
    def may_be_seen(self) -> bool:
        """A yes that comes before its question can have been seen was said to something else."""
        return self.delivery in {"sending", "sent", "unknown"}

    def event(self, state: State) -> dict[str, Any]:
        return {
            "conversation": self.conversation_id,
            "turn": self.turn_id,
            "id": self.id,
            "what": self.what,
            "reason": self.reason,
            "from": self.asked_by,
            "state": state,
        }


class Approvals:
    """Only the owner answers. One question at a time in a chat, so that a plain yes cannot be misread.

    `remove` takes a question out again that repeats what is to be forgotten.
    """

    def __init__(
        self,
        store: Store,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        people: People,
        observers: Observers,
        now: Callable[[], datetime],
        *,
        seconds_max: float = APPROVAL_SECONDS,
    ) -> None:
        self.remove: Remove | None = None
        self._store = store
        self._outbox = outbox
        self._channels = channels
        self._people = people
        self._observe = observers
        self._now = now
        self._seconds_max = seconds_max
        self._open: dict[str, OpenQuestion] = {}
        self._chats: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(
        self,
        question: Question,
        *,
        person: Person,
        spoken_at: Address,
        conversation_id: str,
        turn_id: str,
        language: Language,
    ) -> bool | None:
        """The owner's answer; None when there was none in time, or nowhere to ask. Raises StoreError.

        A turn that ends while it asks closes its question.
        """
        is_owner = person.rights == "owner"
        where = spoken_at if is_owner else self._people.home()
        if where is None or where.channel not in self._channels:
            return None
        async with self._chats[where]:
            answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            asked = OpenQuestion(
                secrets.token_hex(4),
                question.what,
                question.reason,
                # Names can be chosen to look like another's: the owner sees the id too.
                question.asked_by if is_owner else f"{question.asked_by} ({person.id})",
                where,
                conversation_id,
                turn_id,
                answer,
            )
            self._open[asked.id] = asked
            state: State = "expired"
            notice: Delivery | None = None
            try:
                notice = await self._put(asked, language)
                await asyncio.wait({answer}, timeout=self._seconds_max)
                if not answer.done():
                    return None
                state = "allowed" if answer.result() else "denied"
                return answer.result()
            finally:
                del self._open[asked.id]
                self._outbox.withdraw(asked.key)
                self._close(asked, state, language, fades=question.fades)
                self._observe("approval", asked.event(state))
                if question.fades and notice is not None and self.remove is not None:
                    await self._fade(notice, self.remove)

    async def _fade(self, notice: Delivery, remove: Remove) -> None:
        """Takes the text of a question out again; one that was not sent yet stays, for it is still to be sent."""
        _, _, message = await self._store.transcripts.saved(notice.message_seq)
        try:
            await remove(notice.conversation_id, [message.n])
        except ToolFailure as error:
            LOG.warning("the text of a question was kept: %s", error)

    def _close(self, asked: OpenQuestion, state: State, language: Language, *, fades: bool) -> None:
        """The question in its chat says from now on what was decided, and has no buttons any more. `fades`: what was
        asked about stands there no longer."""
        if self._channels[asked.where.channel].info.saved_is_sent or not asked.may_be_seen:
            return
        decision = sentence(f"question_{state}", language)
        text = decision if fades else f"{self._text(asked, language)}\n\n{decision}"
        self._outbox.change(asked.key, text, decision)

    @staticmethod
    def _text(asked: OpenQuestion, language: Language) -> str:
        return sentence("may_i", language).format(
            what=fenced(asked.what), reason=literal(asked.reason), asked_by=literal(asked.asked_by)
        )

    async def _put(self, asked: OpenQuestion, language: Language) -> Delivery | None:
        """Shows the question: a card on the page, and a message where the channel shows only messages."""
        self._observe("approval", asked.event("open"))
        info = self._channels[asked.where.channel].info
        if info.saved_is_sent:
            asked.told("sent")
            return None
        minutes = max(1, round(self._seconds_max / 60))
        how = sentence("how_to_answer", language).format(minutes=minutes)
        choices = (
            Choice(f"{ACTION}:{asked.id}:yes", sentence("yes", language)),
            Choice(f"{ACTION}:{asked.id}:no", sentence("no", language)),
        )
        text = f"{self._text(asked, language)}\n\n{how}"
        return await self._say(asked.where, text, asked.key, asked.told, choices)

    async def say_closed(self, message: InboundMessage, language: Language) -> None:
        """Tells the owner that the question of this answer is not open any more. Raises StoreError."""
        await self._say(message.address, sentence("stale_button", language), f"closed:{secrets.token_hex(8)}")

    async def _say(
        self, where: Address, text: str, key: str, told: Told | None = None, choices: tuple[Choice, ...] = ()
    ) -> Delivery:
        info = self._channels[where.channel].info
        notice = await self._store.notice(where, info.conversations, text, key, info.saved_is_sent, self._now())
        self._outbox.put(notice, told, choices)
        if self._observe.any:
            self._observe("message", saved_event(*await self._store.transcripts.saved(notice.message_seq)))
        return notice

    def answered_by(self, message: InboundMessage, rights: Rights) -> tuple[str, bool] | None:
        """The question this message answers and how: a pressed button, or a plain yes or no that was written to the
        agent in the chat that was asked, once the question was sent there. None for everything else, and for everyone
        but the owner. In a group a yes may be for somebody else: without a mention only the numbers count."""
        if rights != "owner" or message.origin != "person" or message.forwarded_from is not None:
            return None
        if message.action is not None:
            question_id, word = _pressed(message)
            return (question_id, word == "yes") if question_id in self._open and word in {"yes", "no"} else None
        if not _is_plain(message):
            return None
        word = message.text.strip(_DRESS).casefold()
        if word not in (_YES | _NO if message.is_mention or not message.is_group else _NUMBERS):
            return None
        for question in self._open.values():
            if question.where == message.address and question.may_be_seen and not question.answer.done():
                return question.id, word in _YES
        return None

    def answer(self, question_id: str, allow: bool) -> bool:
        """Answers an open question; False when it is not open any more."""
        question = self._open.get(question_id)
        if question is None or question.answer.done():
            return False
        question.answer.set_result(allow)
        return True

    def is_stale(self, message: InboundMessage, rights: Rights) -> bool:
        """The owner pressed a button of a question that is not open any more."""
        return rights == "owner" and is_button(message) and _pressed(message)[0] not in self._open

    def pending(self) -> list[dict[str, Any]]:
        """What waits for an answer now, as the events that told of it."""
        return [question.event("open") for question in self._open.values()]


def is_button(message: InboundMessage) -> bool:
    """Whether it is a pressed button of a question, whoever pressed it: never words for the model."""
    return message.action is not None and message.action.startswith(f"{ACTION}:")


def _pressed(message: InboundMessage) -> tuple[str, str]:
    """The question's id and the answer on the button; empty for other buttons."""
    name, question_id, word = [*(message.action or "").split(":", 2), "", ""][:3]
    return (question_id, word) if name == ACTION else ("", "")


def _is_plain(message: InboundMessage) -> bool:
    """Whether the message is nothing but words: no file, no change of an earlier one. In a group what is written
    without a mention wants no answer, and may still be a number that answers the question."""
    is_words = message.kind == "text" and not message.attachments and message.edits is None
    return is_words and (message.wants_answer or message.is_group)


def literal(text: str) -> str:
    """The text as Markdown that shows it as it is, on one line."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def fenced(text: str) -> str:
    """The text in a code block that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
