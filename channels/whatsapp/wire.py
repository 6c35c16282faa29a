"""The library's events to our messages. Pure functions on its protobuf messages (Neonize, waE2E, waHistorySync)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from channels.message import InboundMessage, Quote
from channels.text import clean
from channels.whatsapp.content import Content, Opened, album_of, content_of, context_of, opened
from channels.whatsapp.ids import id_of, is_group, is_hidden, is_phone, plain_id, user_of
from channels.whatsapp.limits import AHEAD_SECONDS_MAX, ANSWER_AGE_SECONDS_MAX, CUT_CHARS_MIN

CHANNEL = "whatsapp"

_REVOKE, _EPHEMERAL_SETTING, _MESSAGE_EDIT = 0, 3, 14
"""ProtocolMessage.Type"""
_SECRET_MESSAGE_EDIT = 2
"""SecretEncryptedMessage.SecretEncType"""
_SILENT_SERVERS = frozenset({"broadcast", "newsletter", "bot", "call", "msgr", "interop"})
"""Where nobody talks to us: status posts, lists, channels, calls."""
_OTHER = {
    "en": "I received it, but I cannot read this kind of message yet. Please write what you want as text.",
    "ar": "وصلني ما أرسلته، لكنني لا أستطيع قراءة هذا النوع من الرسائل بعد. من فضلك اكتب ما تريد نصًّا.",
}


class BadEvent(ValueError):
    """An event that is not what the library promises; `str()` says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Me:
    """The account this channel is linked with: its ids (phone and hidden), and the language of its notices."""

    ids: frozenset[str]
    language: str = "en"

    @property
    def users(self) -> frozenset[str]:
        return frozenset(map(user_of, self.ids))


@dataclass(frozen=True, slots=True)
class Rules:
    """In which groups an answer is given, and whether only to those who mention us or reply to us."""

    groups: frozenset[str]
    require_mention: bool


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message and what is written on it. `pairs`: which (hidden, phone) ids it says are one person."""

    chat: str
    sender: str
    is_own: bool
    message_id: str
    at: datetime
    name: str
    message: Any
    pairs: tuple[tuple[str, str], ...] = ()
    is_history: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """What an envelope holds for us. `timer_seconds`: how long messages of this chat stay from now on."""

    message: InboundMessage | None = None
    timer_seconds: int | None = None


def read_event(event: Any, received_at: datetime) -> Envelope | None:
    """The envelope in an event Message; None for what is no message to us. Raises BadEvent."""
    info = event.Info
    source = info.MessageSource
    chat, sender = id_of(source.Chat), id_of(source.Sender)
    if not info.ID or not chat or not sender:
        raise BadEvent("a message without id, chat or sender")
    if source.Chat.Server in _SILENT_SERVERS or info.Category == "peer":
        return None
    pairs = [(sender, id_of(source.SenderAlt))]
    if not source.IsGroup:
        pairs.append((chat, id_of(source.RecipientAlt if source.IsFromMe else source.SenderAlt)))
    message = event.Message if any(True for _ in event.Message.ListFields()) else event.Raw
    return Envelope(
        chat=chat,
        sender=sender,
        is_own=source.IsFromMe,
        message_id=info.ID,
        at=_time(info.Timestamp / 1000, received_at),
        name=clean(info.Pushname).strip(),
        message=message,
        pairs=_pairs(pairs),
    )


def read_history(sync: Any, me: Me, received_at: datetime) -> Iterator[Envelope]:
    """The envelopes of a HistorySync, each chat oldest first."""
    names = {plain_id(entry.ID): clean(entry.pushname).strip() for entry in sync.pushnames}
    for conversation in sync.conversations:
        chat = plain_id(conversation.ID)
        if chat.partition("@")[2] in _SILENT_SERVERS or "@" not in chat:
            continue
        stored = [entry.message for entry in conversation.messages if entry.HasField("message")]
        for web in sorted(stored, key=lambda found: found.messageTimestamp):
            key = web.key
            if not key.ID or not web.HasField("message"):
                continue
            sender = chat if not is_group(chat) else plain_id(key.participant or web.participant)
            sender = min(me.ids, key=is_hidden, default="") if key.fromMe else sender
            if not sender:
                continue
            yield Envelope(
                chat=chat,
                sender=sender,
                is_own=key.fromMe,
                message_id=key.ID,
                at=_time(web.messageTimestamp, received_at),
                name=clean(web.pushName).strip() or names.get(sender, ""),
                message=web.message,
                is_history=True,
            )


def history_pairs(sync: Any) -> tuple[tuple[str, str], ...]:
    """The (hidden, phone) ids that a HistorySync says are one person."""
    pairs = [(plain_id(entry.lidJID), plain_id(entry.pnJID)) for entry in sync.phoneNumberToLidMappings]
    for chat in sync.conversations:
        pairs += [(plain_id(chat.ID), plain_id(chat.pnJID)), (plain_id(chat.lidJID), plain_id(chat.ID))]
    return _pairs(pairs)


def history_timers(sync: Any) -> dict[str, int]:
    """How long messages stay, by chat, in seconds, where a HistorySync says so."""
    return {
        plain_id(chat.ID): int(chat.ephemeralExpiration)
        for chat in sync.conversations
        if chat.HasField("ephemeralExpiration")
    }


def history_titles(sync: Any) -> dict[str, str]:
    """The names of groups."""
    named = ((plain_id(chat.ID), clean(chat.name).strip()) for chat in sync.conversations)
    return {chat: name for chat, name in named if name and is_group(chat)}


def pairs_of(ids: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The (hidden, phone) pair among the ids of one person."""
    return _pairs([(hidden, phone) for hidden in sorted(ids) for phone in sorted(ids) if is_hidden(hidden)])


def _pairs(pairs: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each pair with its hidden id first; what is no such pair is left out."""
    both = [(first, second) if is_hidden(first) else (second, first) for first, second in pairs]
    return tuple(dict.fromkeys(pair for pair in both if is_hidden(pair[0]) and is_phone(pair[1])))


def read(envelope: Envelope, me: Me, rules: Rules, one: Callable[[str], str], now: datetime) -> Heard:
    """What an envelope holds. `one` gives the one id of a person (`ids.Identities.one`)."""
    inside = opened(envelope.message)
    if inside.is_status:
        return Heard()
    # Anybody can wrap a message like that; it says something only from an account that is ours.
    if inside.is_own and (envelope.is_own or one(envelope.sender) in {one(mine) for mine in me.ids}):
        envelope = replace(envelope, is_own=True, chat=plain_id(inside.sent_to or envelope.chat))
    chat, sender = one(envelope.chat), one(envelope.sender)
    is_self = envelope.is_own and chat in {one(mine) for mine in me.ids}
    base = InboundMessage(
        channel=CHANNEL,
        chat_id=chat,
        message_id=clean(envelope.message_id),
        sender_id=chat if is_self else sender,
        sender_name=envelope.name or user_of(sender),
        text="",
        sent_at=envelope.at,
        is_group=is_group(chat),
        is_own=envelope.is_own and not is_self,
        wants_answer=False,
        flags=(*inside.flags, *(("history",) if envelope.is_history else ())),
    )
    changed = _about_earlier(inside, base)
    if changed is not None:
        return changed
    content = content_of(inside.message)
    if content is None:
        return Heard()
    is_late = envelope.is_history or now - envelope.at > timedelta(seconds=ANSWER_AGE_SECONDS_MAX)
    return _message(base, inside, content, me, rules, one, may_answer=not is_late and not base.is_own)


def _message(
    base: InboundMessage,
    inside: Opened,
    content: Content,
    me: Me,
    rules: Rules,
    one: Callable[[str], str],
    *,
    may_answer: bool,
) -> Heard:
    context = context_of(inside.message)
    text, is_mention = content.text, False
    reply_to = forwarded_from = timer = quote = None
    if context is not None:
        is_mention = _calls(context, me, one)
        quote = _quote(context, me, base, one)
        reply_to = clean(context.stanzaID) or None
        timer = int(context.expiration) or None
        if context.isForwarded or context.HasField("forwardedNewsletterMessageInfo"):
            forwarded_from = clean(context.forwardedNewsletterMessageInfo.newsletterName).strip() or "somebody else"
    if base.is_group:
        text, is_named = _without_name(text, me)
        is_mention = is_mention or is_named
        may_answer = may_answer and base.chat_id in rules.groups and (is_mention or not rules.require_mention)
    notice = _notice(content, me) if may_answer else None
    message = replace(
        base,
        kind=content.kind,
        text=text,
        attachments=content.attachments,
        reply_to=reply_to,
        is_mention=is_mention,
        forwarded_from=forwarded_from,
        wants_answer=may_answer and notice is None and bool(text.strip() or content.attachments),
        notice=notice,
        quote=quote,
        more_may_come=album_of(inside.message) is not None or len(text) >= CUT_CHARS_MIN,
        flags=tuple(dict.fromkeys((*base.flags, *content.flags))),
    )
    return Heard(message, timer)


def _about_earlier(inside: Opened, base: InboundMessage) -> Heard | None:
    """Edits, removals, reactions and timers; None for a message of its own."""
    message = inside.message
    if message.HasField("reactionMessage"):
        reaction = message.reactionMessage
        return _change(base, reaction.key.ID, "reaction", clean(reaction.text))
    if message.HasField("secretEncryptedMessage"):
        secret = message.secretEncryptedMessage
        if secret.secretEncType != _SECRET_MESSAGE_EDIT:
            return Heard()
        target = clean(secret.targetMessageKey.ID)
        return _change(base, target, "system", f"{target} was edited, new text unavailable")
    if not message.HasField("protocolMessage"):
        return None
    protocol = message.protocolMessage
    if protocol.type == _EPHEMERAL_SETTING:
        return Heard(timer_seconds=int(protocol.ephemeralExpiration))
    target = clean(protocol.key.ID)
    if protocol.type == _MESSAGE_EDIT and protocol.HasField("editedMessage"):
        content = content_of(opened(protocol.editedMessage).message)
        if content is None:
            return _change(base, target, "system", f"{target} was edited, new text unavailable")
        return _change(base, target, "edit", content.text)
    if protocol.type == _REVOKE and target:
        return _change(base, target, "revoke", "")
    return Heard()


def _change(base: InboundMessage, target: str, kind: Any, text: str) -> Heard:
    if not target:
        return Heard()
    return Heard(replace(base, kind=kind, text=text, edits=target))


def _calls(context: Any, me: Me, one: Callable[[str], str]) -> bool:
    """Whether it mentions us, or replies to one of our messages."""
    mine = {one(mine) for mine in me.ids} | me.ids
    named = [plain_id(found) for found in (*context.mentionedJID, context.participant) if found]
    return any(found in mine or one(found) in mine for found in named)


def _quote(context: Any, me: Me, base: InboundMessage, one: Callable[[str], str]) -> Quote | None:
    """What the message replies to. Of an author who is neither us nor the sender only the number is known."""
    if not context.HasField("quotedMessage"):
        return None
    content = content_of(opened(context.quotedMessage).message)
    if content is None:
        return None
    author = one(plain_id(context.participant)) if context.participant else ""
    is_ours = author in {one(mine) for mine in me.ids}
    name = base.sender_name if author == base.sender_id else user_of(author)
    text = content.text or ", ".join(file.name for file in content.attachments)
    return Quote(text, "" if is_ours else name, is_own=is_ours) if text else None


def _without_name(text: str, me: Me) -> tuple[str, bool]:
    """The text without `@our number`, and whether that stood in it."""
    if not me.users:
        return text, False
    names = "|".join(sorted(map(re.escape, me.users), key=len, reverse=True))
    bare, count = re.subn(rf"(?:(?<=\s)|^)@(?:{names})(?!\d)[ \t]*", "", text)
    return (bare if bare.strip() or not count else text), count > 0


def _notice(content: Content, me: Me) -> str | None:
    return None if content.is_readable else _OTHER[me.language]


def _time(seconds: float, received_at: datetime) -> datetime:
    """The time of a message; the time of arrival where it has none, or one that cannot be."""
    if not 0 < seconds < received_at.timestamp() + AHEAD_SECONDS_MAX:
        return received_at
    return datetime.fromtimestamp(seconds, UTC)
