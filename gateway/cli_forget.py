"""`hudhud memory forget` and `hudhud sessions remove`: shows what would go, asks, removes it; no gateway needed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gateway.cli_errors import USED_WRONGLY, CliError, failed, no_such
from gateway.cli_options import Place
from gateway.cli_output import one_line, print_json, prose, remark, say

if TYPE_CHECKING:
    from agent.capabilities.introspect.forgetting import ForgetPlan
    from gateway.library import Library

_YES = frozenset({"y", "yes", "نعم"})


def forget(place: Place, what: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Raises CliError when `what` means nothing, several things, or something that cannot go now."""
    asyncio.run(_forget(place, [what], yes=yes, dry_run=dry_run, as_json=as_json))


def remove(place: Place, key: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """All conversations of a session, or the one with this id."""
    asyncio.run(_remove(place, key, yes=yes, dry_run=dry_run, as_json=as_json))


async def _remove(place: Place, key: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    from gateway.backend import OWNER
    from gateway.cli_library import opened

    async with opened(place) as library:
        transcripts = library.store.transcripts
        found = await transcripts.session(OWNER, key)
        found = found or [one for one in await transcripts.conversation(OWNER, key) if one.id == key]
    if not found:
        raise no_such(f"There is no session or conversation {key}.", "`hudhud conversations list` shows them.")
    refs = [f"conversation:{one.id}#" for one in found]
    await _forget(place, refs, yes=yes, dry_run=dry_run, as_json=as_json)


async def _forget(place: Place, wanted: Sequence[str], *, yes: bool, dry_run: bool, as_json: bool) -> None:
    from agent.hippocampus.plans import Ambiguous
    from agent.types import ToolFailure
    from gateway.cli_library import opened

    async with opened(place, fresh=True) as library:
        try:
            plans = [await _plan(library, what) for what in wanted]
        except Ambiguous as error:
            raise CliError(USED_WRONGLY, "ambiguous", str(error)) from error
        except ToolFailure as error:
            raise no_such(str(error)) from error
        forgetting = library.introspect.forgetting
        shown = _together([forgetting.as_json(plan) for plan in plans])
        if dry_run:
            _print({"status": "planned", **shown, "messages": 0, "kept": []}, as_json=as_json)
            return
        if not yes and not _agreed(shown, as_json=as_json):
            raise failed("denied", "Nothing was removed.", "Add --yes to agree beforehand, --dry-run to see what goes.")
        try:
            done = [await forgetting.carry_out(plan) for plan in plans]
        except ToolFailure as error:
            raise failed("in_use", str(error)) from error
    messages, kept = sum(one["messages"] for one in done), [path for one in done for path in one["kept"]]
    _print({"status": "removed", **shown, "messages": messages, "kept": kept}, as_json=as_json)


async def _plan(library: Library, what: str) -> ForgetPlan:
    from gateway.cli_library import owner_call

    return await library.introspect.forgetting.plan(owner_call(), {"what": what})


def _together(shapes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: [item for shape in shapes for item in shape[name]] for name in ("remove", "also", "mentions")}


def _agreed(shown: dict[str, Any], *, as_json: bool) -> bool:
    """Shows what would go and asks; without a terminal nobody can be asked."""
    if as_json or not sys.stdin.isatty():
        return False
    _items(shown)
    remark("Messages are removed for good; of files the old version is kept.")
    remark("Remove this? [y/N] ", on_one_line=True)
    try:
        return input().strip().casefold() in _YES
    except EOFError:
        return False


def _items(shape: dict[str, Any]) -> None:
    heads = (("remove", ""), ("also", "And what repeats it:"), ("mentions", "Said among other things, and left alone:"))
    for name, head in heads:
        if shape[name] and head:
            say(head)
        for item in shape[name]:
            say(item["ref"], "bold")
            prose(one_line(item["text"]), "  ")


def _print(shape: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shape)
        return
    if shape["status"] == "planned":
        say("This would be removed:")
        _items(shape)
        return
    say(f"Removed: {', '.join(item['ref'] for item in shape['remove'])}")
    if shape["messages"]:
        remark(f"{shape['messages']:,} message(s) are gone for good.")
    if shape["kept"]:
        remark(f"The files as they were, to copy back by hand: {', '.join(shape['kept'])} (in the workspace).")
