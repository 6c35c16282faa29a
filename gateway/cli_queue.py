"""`hudhud queue`: what waits, and which replies did not arrive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from gateway.store.types import Delivery

app = typer.Typer(help="Waiting messages, and replies that did not arrive.")
RETRYABLE = {"planned", "retry", "unknown", "failed", "expired"}
ENDED = {"unknown", "failed"}


@app.command("list")
def list_(home: Home = None, as_json: Json = False) -> None:
    """What waits, and replies that did not arrive.

    A reply is unknown when the line broke after it was sent: it may have arrived, so it is not sent again by itself.
    """
    _list(place(home), as_json)


@app.command()
def retry(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of a reply, as `queue list` shows it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Send a reply again.

    When no gateway runs, it is sent at the next start.
    """
    from gateway.cli_output import print_json
    from gateway.client import quoted

    where = place(home)
    client = where.client()
    if client is None:
        asyncio.run(_retry(where, key))
    else:
        client.post(f"/api/deliveries/{quoted(key)}/retry")
    if as_json:
        print_json({"key": key, "state": "retry"})


@app.command()
def drop(
    id: Annotated[str, typer.Argument(metavar="ID", help="A waiting message's id, or an ended reply's key.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take a waiting message or an ended reply out.

    The message is not answered then; a reply that failed, or whose fate is unknown, leaves the list.
    """
    from gateway.cli_output import print_json

    state = asyncio.run(_drop(place(home), id))
    if as_json:
        print_json({"id": id, "state": state})


def _list(where: Place, as_json: bool) -> None:
    from gateway.cli_output import print_json, remark, say, table, when

    waiting, deliveries = asyncio.run(_read(where))
    if as_json:
        print_json({"waiting": waiting, "deliveries": [_shape(delivery) for delivery in deliveries]})
        return
    if waiting:
        table(
            ("message", "session", "state", "since"),
            [
                (message["message_id"], message["sessionKey"], message["state"], when(message["since"], where.zone))
                for message in waiting
            ],
            short=("session",),
            state="state",
        )
    if waiting and deliveries:
        say()
    if deliveries:
        table(
            ("reply", "to", "state", "remark"),
            [
                (
                    delivery.key,
                    delivery.address.session_key,
                    delivery.state,
                    _remark(delivery, when(delivery.next_at, where.zone)),
                )
                for delivery in deliveries
            ],
            short=("to",),
            state="state",
            wrap=True,
        )
    if not waiting and not deliveries:
        remark("Nothing waits.")


def _remark(delivery: Delivery, next_try: str) -> str:
    times = "once" if delivery.attempts == 1 else f"{delivery.attempts} times"
    parts = [f"tried {times}" if delivery.attempts else "", f"again at {next_try}" if next_try else ""]
    about = ", ".join(part for part in parts if part)
    return ": ".join(part for part in (about, delivery.reason or "") if part)


async def _read(where: Place) -> tuple[list[dict[str, Any]], list[Delivery]]:
    from gateway.cli_library import opened

    async with opened(where) as library:
        waiting = [{**message, "since": _iso(message["since"])} for message in await library.store.waiting()]
        return waiting, await library.store.shown_deliveries()


async def _retry(where: Place, key: str) -> None:
    from datetime import UTC, datetime

    from gateway.cli_library import opened

    async with opened(where) as library:
        delivery = await library.store.delivery(key)
        if delivery is None or delivery.state not in RETRYABLE | {"sending"}:
            raise _no_reply(key)
        await library.store.move_delivery(
            delivery,
            "retry",
            datetime.now(UTC),
            attempts=delivery.attempts,
            sent_ids=delivery.sent_ids,
            reason="asked for again",
            next_at=datetime.now(UTC),
        )


async def _drop(where: Place, id: str) -> str:
    """The state it is in now."""
    from datetime import UTC, datetime

    from gateway.cli_errors import no_such
    from gateway.cli_library import opened

    async with opened(where) as library:
        if await library.store.drop_message(id):
            return "cancelled"
        delivery = await library.store.delivery(id)
        if delivery is None or delivery.state not in ENDED:
            remedy = "`hudhud queue list` shows what there is; what runs or is on its way cannot be dropped."
            raise no_such(f"Neither a waiting message nor an ended reply is called {id}.", remedy)
        await library.store.move_delivery(
            delivery,
            "expired",
            datetime.now(UTC),
            attempts=delivery.attempts,
            sent_ids=delivery.sent_ids,
            reason="dropped by hand",
        )
        return "expired"


def _no_reply(key: str) -> Exception:
    from gateway.cli_errors import no_such

    return no_such(f"No reply that could be sent again has the key {key}.", "`hudhud queue list` shows them.")


def _shape(delivery: Delivery) -> dict[str, Any]:
    """The shape of docs/formats.md."""
    return {
        "key": delivery.key,
        "channel": delivery.address.channel,
        "chat": delivery.address.chat_id,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_at": _iso(delivery.next_at),
        "reason": delivery.reason,
    }


def _iso(at: Any) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds")
