"""`hudhud conversations`: list and read what was said, over all channels; no gateway needed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gateway.cli_options import After, Before, Home, Json, Place, given, place

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(help="What was said, over all channels.")


@app.command("list")
def list_(
    channel: Annotated[str | None, typer.Option(metavar="NAME", help="Only this channel.")] = None,
    query: Annotated[str | None, typer.Option(metavar="WORDS", help="Those that match best, best first.")] = None,
    after: After = None,
    before: Before = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="At most so many.")] = 20,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The conversations of all channels, the latest first."""
    _list(place(home), given(channel=channel, query=query, after=after, before=before, limit=limit), as_json)


@app.command()
def read(
    id: Annotated[str, typer.Argument(metavar="ID", help="Any part of its id that no other has.")],
    from_: Annotated[
        int | None, typer.Option("--from", metavar="N", min=1, help="First message; without, the last 15.")
    ] = None,
    to: Annotated[int | None, typer.Option(metavar="N", min=1, help="Last message.")] = None,
    what: Annotated[Literal["messages", "tools", "all"], typer.Option(help="What to show.")] = "all",
    detail: Annotated[Literal["brief", "full"], typer.Option(help="Long texts cut, or whole.")] = "brief",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """One conversation, with its tool calls."""
    args = given(id=id, to=to, what=what, detail=detail) | ({} if from_ is None else {"from": from_})
    _read(place(home), args, as_json)


def _list(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import used_wrongly
    from gateway.cli_output import print_json, remark, table, when

    async def found() -> dict[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh="query" in args) as library:
            return await library.introspect.conversation_list_json(owner_call(), args)

    try:
        answer = asyncio.run(found())
    except ToolFailure as error:
        raise used_wrongly(str(error)) from error
    if as_json:
        print_json(answer)
    elif answer["conversations"]:
        table(
            ("id", "updated", "channel", "messages", "title"),
            [
                (
                    conversation["id"],
                    when(conversation["updated_at"], where.zone),
                    conversation["channel"],
                    str(conversation["message_count"]),
                    conversation["title"] or conversation["chat"],
                )
                for conversation in answer["conversations"]
            ],
            right=("messages",),
        )
    else:
        remark("No conversation matches." if len(args) > 1 else "There are no conversations yet.")


def _read(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from gateway.cli_output import print_json, prose

    text, shape = asyncio.run(_conversation(where, args))
    if as_json:
        print_json(shape)
    else:
        prose(text)


async def _conversation(where: Place, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    from agent.types import ToolFailure
    from gateway.backend import OWNER
    from gateway.cli_errors import no_such, used_wrongly
    from gateway.cli_library import opened, owner_call

    part = str(args["id"]).removeprefix("conversation:").partition("#")[0]
    async with opened(where) as library:
        if not part or not await library.store.transcripts.conversation(OWNER, part):
            raise no_such(f"There is no conversation {part}.", "`hudhud conversations list` shows them.")
        call = owner_call()
        try:
            return (
                await library.introspect.conversation_read(call, args),
                await library.introspect.conversation_read_json(call, args),
            )
        except ToolFailure as error:
            raise used_wrongly(str(error)) from error
