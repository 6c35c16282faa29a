"""What the library says about the connection, as states with what a person can do. Pure functions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from channels.channel import ChannelDown, SendError, SendRefused, SendRetry, SendUnknown
from channels.whatsapp.limits import CHURN_CONNECTIONS, CHURN_SHORT_SECONDS, CHURN_WINDOW_SECONDS

EXPIRED = "the codes were not used in time"
LINK = "Run: hudhud channels link whatsapp"
REMEDY = {
    "logged_out": f"{LINK}, and scan the code with the phone under Settings, Linked devices.",
    "replaced": f"End the other program that uses this session (a copy of this home folder?). Then {LINK[0].lower()}"
    f"{LINK[1:]}: it goes on with the session as it is.",
    "banned": "WhatsApp has blocked this number for a while: look at the phone. When it is over: "
    "hudhud channels link whatsapp. A second number, and fewer messages to people who do not write, are safer.",
    "outdated": "This version of the library is too old for WhatsApp: pip install --upgrade neonize, and start again.",
    "unreachable": "Check the network; it is tried again by itself.",
    "degraded": "Nothing to do: it is tried again by itself.",
    "session": "Its session file is damaged: hudhud channels logout whatsapp, then link again.",
}

# ConnectFailureReason of Neonize.proto
_GENERIC, _LOGGED_OUT, _TEMP_BANNED, _MAIN_DEVICE_GONE, _UNKNOWN_LOGOUT, _OUTDATED, _BAD_AGENT = range(1, 8)


def logged_out(detail: str) -> ChannelDown:
    return ChannelDown("logged_out", detail, remedy=REMEDY["logged_out"], terminal=True)


def replaced(detail: str) -> ChannelDown:
    return ChannelDown("replaced", detail, remedy=REMEDY["replaced"], terminal=True)


def unreachable(detail: str) -> ChannelDown:
    return ChannelDown("unreachable", detail, remedy=REMEDY["unreachable"])


def down_of_event(event: Any) -> ChannelDown:
    """What an event means after which the connection is gone."""
    match event.DESCRIPTOR.name:
        case "LoggedOut":
            return logged_out("this device was logged out on the phone or by WhatsApp")
        case "StreamReplaced":
            return replaced("another program has taken over this session")
        case "TemporaryBan":
            return _banned(event)
        case "ClientOutdated":
            return _outdated()
        case _:
            return _failure(event)


def _failure(event: Any) -> ChannelDown:
    if event.Reason in {_LOGGED_OUT, _MAIN_DEVICE_GONE, _UNKNOWN_LOGOUT}:
        return logged_out("this device was logged out on the phone or by WhatsApp")
    if event.Reason == _TEMP_BANNED:
        return ChannelDown("banned", "the number is banned for a while", remedy=REMEDY["banned"], terminal=True)
    if event.Reason in {_OUTDATED, _BAD_AGENT}:
        return _outdated()
    return unreachable(f"WhatsApp refused the connection ({event.Message or f'reason {event.Reason}'})")


def _banned(event: Any) -> ChannelDown:
    """`Expire`: the seconds until it is over."""
    hours = f" for {event.Expire / 3600:.1f} hours" if 0 < event.Expire < 10**8 else " for a while"
    reasons: Any = event.DESCRIPTOR.enum_types_by_name["TempBanReason"].values_by_number
    reason = str(reasons[event.Code].name).replace("_", " ").lower() if event.HasField("Code") else ""
    detail = f"the number is banned{hours}{f' ({reason})' if reason else ''}"
    return ChannelDown("banned", detail, remedy=REMEDY["banned"], terminal=True)


def _outdated() -> ChannelDown:
    return ChannelDown("outdated", "WhatsApp no longer takes this client", remedy=REMEDY["outdated"], terminal=True)


def down_of_error(text: str) -> ChannelDown:
    """What it means that the dial ended with these words of the library."""
    words = text.casefold()
    if any(part in words for part in ("database", "sqlite", "malformed", "unable to open", "readonly", "foreign key")):
        detail = f"the session cannot be read ({text[:160]})"
        return ChannelDown("degraded", detail, remedy=REMEDY["session"], terminal=True)
    if "outdated" in words:
        return _outdated()
    if "pairing failed" in words:
        return logged_out(text[:160])
    reason = text.rpartition(": ")[2][:160] if "dial" in words else text[:160]
    return unreachable(f"WhatsApp cannot be reached ({reason})")


def send_error(text: str, sent_ids: tuple[str, ...]) -> SendError:
    """What a failed send means, by the words of the library (whatsmeow, send.go and errors.go)."""
    words = text.casefold()
    if "timed out" in words or "disconnected before" in words or "websocket disconnected" in words:
        return SendUnknown(text, sent_ids=sent_ids)
    if "server returned error" in words:
        code = words.rpartition("error")[2].strip(" :")[:3]
        busy = code in {"429", "479"} or code.startswith("5")
        return SendRetry(text, sent_ids=sent_ids) if busy else SendRefused(text, sent_ids=sent_ids)
    surely_not = (
        "not connected",
        "not logged in",
        "device list",
        "group members",
        "prekey",
        "usync",
        "get participants",
    )
    if any(part in words for part in (*surely_not, "doesn't contain a device jid")):
        return SendRetry(text, sent_ids=sent_ids)
    if any(part in words for part in ("unknown server", "can't send", "not in group", "invalid", "not-acceptable")):
        return SendRefused(text, sent_ids=sent_ids)
    return SendUnknown(text, sent_ids=sent_ids)


class Churn:
    """Tells when two programs fight over a session: connections that are closed again at once, one after the other."""

    def __init__(self) -> None:
        self._opened_at: datetime | None = None
        self._short: list[datetime] = []

    def opened(self, at: datetime) -> None:
        self._opened_at = at

    def closed(self, at: datetime) -> bool:
        """True when that was one too many. A second word about the same connection does not count."""
        if self._opened_at is None:
            return False
        opened_at, self._opened_at = self._opened_at, None
        lasted = at - opened_at
        if lasted >= timedelta(seconds=CHURN_WINDOW_SECONDS):
            self._short.clear()
        elif lasted <= timedelta(seconds=CHURN_SHORT_SECONDS):
            self._short = [known for known in self._short if at - known <= timedelta(seconds=CHURN_WINDOW_SECONDS)] + [
                opened_at
            ]
        return len(self._short) >= CHURN_CONNECTIONS

    def forget(self) -> None:
        """A person has looked at it."""
        self._opened_at = None
        self._short.clear()
