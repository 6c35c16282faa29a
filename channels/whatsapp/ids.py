"""WhatsApp ids: `15550002222@s.whatsapp.net` a phone, `77001122334455@lid` a hidden one, `1203...@g.us` a group.

A person has a phone id and, for some years now, a hidden one (LID); which of the two a message carries is up to the
platform. Here a person has one id, the one that the settings name, else the phone's where it is known.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

PHONE = "s.whatsapp.net"
HIDDEN = "lid"
GROUP = "g.us"
_SERVERS = {"c.us": PHONE, "hosted": PHONE, "hosted.lid": HIDDEN, "": ""}
_DIGITS_MIN, _DIGITS_MAX = 7, 15
"""A phone number with its country code (E.164)."""
_PUNCTUATION = frozenset(" +-()./\u00a0\u200e\u200f\u202a\u202c")


def plain_id(text: str) -> str:
    """An id without what says which of a person's devices it is: `1555:2@s.whatsapp.net` and `1555@c.us` are
    `1555@s.whatsapp.net`."""
    user, _, server = text.strip().partition("@")
    server = _SERVERS.get(server, server)
    if server in {PHONE, HIDDEN}:
        user = user.partition(":")[0].partition(".")[0]
    return f"{user}@{server}" if server else user


def id_of(jid: Any) -> str:
    """The id in the library's JID message; empty for an empty one."""
    return plain_id(f"{jid.User}@{jid.Server}") if jid.User else ""


def is_hidden(person: str) -> bool:
    return person.endswith(f"@{HIDDEN}")


def is_phone(person: str) -> bool:
    return person.endswith(f"@{PHONE}")


def is_group(chat: str) -> bool:
    return chat.endswith(f"@{GROUP}")


def user_of(any_id: str) -> str:
    """What stands before the `@`."""
    return any_id.partition("@")[0]


def phone_digits(text: str) -> str:
    """The digits of a phone number that is written in any way. Raises ValueError, whose text is what is allowed."""
    digits = ""
    for char in text.strip():
        if char.isdigit():
            digits += str(unicodedata.digit(char))
        elif char not in _PUNCTUATION:
            raise ValueError(_WANTED_PHONE)
    digits = digits.removeprefix("00")
    if not _DIGITS_MIN <= len(digits) <= _DIGITS_MAX or digits.startswith("0"):
        raise ValueError(_WANTED_PHONE)
    return digits


def person_id(text: str) -> str:
    """The id of a person as the settings may write it. Raises ValueError, whose text is what is allowed."""
    if "@" not in text:
        return f"{phone_digits(text)}@{PHONE}"
    found = plain_id(text)
    if is_phone(found):
        return f"{phone_digits(user_of(found))}@{PHONE}"
    if not is_hidden(found) or not user_of(found).isdigit():
        raise ValueError(_WANTED_PHONE)
    return found


def group_id(text: str) -> str:
    """The id of a group as the settings may write it. Raises ValueError, whose text is what is allowed."""
    found = plain_id(text if "@" in text else f"{text}@{GROUP}")
    if not is_group(found) or not user_of(found).replace("-", "").isdigit():
        raise ValueError("a group's id such as 120363000000000000@g.us")
    return found


_WANTED_PHONE = "a phone number with its country code, such as +966 50 000 0000, or an id that ends in @lid"


class Identities:
    """Which hidden id is whose phone. `listed`: the people that the settings name; theirs is the form that counts."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = frozenset(listed)
        self._phones: dict[str, str] = {}
        self._hidden: dict[str, str] = {}

    def learn(self, hidden: str, phone: str) -> bool:
        """Takes in that both are one person. False when that was known, or when they are not such a pair.

        A person has one of each: a number that got another hidden id, or a hidden id with another number, is from now
        on nobody else's. Numbers are given to other people when their owner leaves.
        """
        if not (is_hidden(hidden) and is_phone(phone)) or self._phones.get(hidden) == phone:
            return False
        self._hidden.pop(self._phones.pop(hidden, ""), None)
        self._phones.pop(self._hidden.pop(phone, ""), None)
        self._phones[hidden] = phone
        self._hidden[phone] = hidden
        return True

    def knows(self, person: str) -> bool:
        """Whether both forms of this person are known."""
        return person in self._phones or person in self._hidden

    def forms(self, person: str) -> tuple[str, ...]:
        """All known ids of this person, this one first."""
        other = self._phones.get(person) or self._hidden.get(person)
        return (person,) if other is None else (person, other)

    def one(self, any_id: str) -> str:
        """The one id of a person; groups and what is unknown stay as they are."""
        forms = self.forms(any_id)
        for form in forms:
            if form in self._listed:
                return form
        return next((form for form in forms if is_phone(form)), any_id)
