"""Arguments of the tools, as a model or a query string gives them. Each function raises ToolFailure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.characters import whole_characters
from agent.types import CallContext, JsonObject, ToolFailure


def text(args: JsonObject, name: str) -> str | None:
    """An optional text; blank counts as not given."""
    value = args.get(name)
    given = "" if value is None else whole_characters(str(value)).strip()
    return given or None


def required(args: JsonObject, name: str, *, blank: bool = False) -> str:
    """A text that must be there; `blank`: an empty one is good."""
    given = args.get(name)
    value = "" if given is None else whole_characters(str(given))
    if not blank and not value.strip():
        raise ToolFailure(f"{name} is missing.")
    return value


def number(args: JsonObject, name: str, default: int, most: int) -> int:
    """A number between 1 and `most`."""
    try:
        return max(1, min(int(args.get(name) or default), most))
    except (TypeError, ValueError, OverflowError):
        raise ToolFailure(f"{name} must be a whole number from 1 to {most}.") from None


def place(args: JsonObject, name: str, default: int) -> int:
    """The number of a message, 1 at least."""
    value = args.get(name)
    try:
        return default if value is None else max(1, int(value))
    except (TypeError, ValueError, OverflowError):
        raise ToolFailure(f"{name} must be the number of a message, 1 or more.") from None


def choice(args: JsonObject, name: str, allowed: Sequence[str]) -> str:
    """One of the words allowed; the first without a word."""
    value = text(args, name) or allowed[0]
    if value not in allowed:
        raise ToolFailure(f"{name} is {value[:40]!r}; it can be {', '.join(allowed)}.")
    return value


def session_key(args: JsonObject) -> str | None:
    """The session, under either of the two names its key has."""
    return text(args, "session_key") or text(args, "sessionKey")


def owners_only(ctx: CallContext, what: str) -> None:
    """Refuses everyone else; `what` completes "Only the owner may ..."."""
    if ctx.viewer.session_keys is not None:
        raise ToolFailure(f"Only the owner may {what}.")
