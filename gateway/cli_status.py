"""`hudhud status`: what runs, since when, the channels, the queue, what comes next."""

from __future__ import annotations

from typing import Any

from gateway.cli_options import Place
from gateway.cli_output import lasted, print_json, say, table, when


def status(place: Place, *, link: bool, as_json: bool) -> None:
    """Asks the running gateway; raises CliError (exit code 4) when none runs."""
    client = place.needed_client()
    if link and not as_json:
        say(_link(client.get("/api/link")["link"], client.address))
        return
    found = client.get("/api/status")
    if as_json:
        print_json({**found, "link": _link(client.get("/api/link")["link"], client.address)} if link else found)
        return
    _show(place, found, client.address)


def _link(link: str, address: str) -> str:
    return link if link.startswith("http") else f"{address}{link}"


def _show(place: Place, found: dict[str, Any], address: str) -> None:
    queue = found["queue"]
    say(f"Hudhud {found['version']}, running for {lasted(found['uptime_seconds'])}")
    rows = [("page", address), ("model", _model(found.get("model", ""))), ("queue", _queue(queue))]
    if progress := found["index"].get("progress"):
        rows.append(("index", f"is built anew: {progress['messages']:,} of {progress['messages_total']:,} messages"))
    elif found["index"].get("indexing"):
        rows.append(("index", "still reading what is new"))
    if fault := found["index"].get("fault"):
        rows.append(("index", fault))
    rows += [("skipped", f"{item['path']}: {item['reason']}") for item in found["index"].get("skipped", [])]
    for name, value in rows:
        if value:
            say(value, head=f"{name:<10}")
    say()
    channel_table(place, found["channels"])
    if found["next_jobs"]:
        say()
        table(
            ("next", "job"),
            [(when(job["at"], place.zone), job["name"]) for job in found["next_jobs"]],
        )


def channel_table(place: Place, channels: list[dict[str, Any]]) -> None:
    """How each channel is, since when it last heard and said something, and what to do."""
    table(
        ("channel", "state", "last received", "last sent", "remark"),
        [
            (
                channel["channel"],
                channel["state"].replace("_", " "),
                when(channel["last_receive_at"], place.zone),
                when(channel["last_send_at"], place.zone),
                ". ".join(part.rstrip(".") for part in (channel["detail"], channel["remedy"]) if part),
            )
            for channel in channels
        ],
        state="state",
        wrap=True,
    )


def _model(name: str) -> str:
    """Provider and model; one word where they are called the same."""
    return " ".join(dict.fromkeys(name.split()))


def _queue(queue: dict[str, int]) -> str:
    parts = [
        f"{count} {one if count == 1 else many}"
        for count, one, many in (
            (queue["waiting"], "message waits", "messages wait"),
            (queue["deliveries"], "reply on its way", "replies on their way"),
        )
        if count
    ]
    return ", ".join(parts) or "empty"
