"""`hudhud sessions`: exact words in past sessions, and the messages around them; no gateway needed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gateway.cli_options import After, Before, Home, Json, Place, given, place

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(help="What was said in past sessions, word for word.")


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='The words; "quoted" ones must stand together.')],
    session_key: Annotated[str | None, typer.Option(metavar="KEY", help="Only this session.")] = None,
    role: Annotated[Literal["user", "assistant"] | None, typer.Option(help="Only what one side said.")] = None,
    after: After = None,
    before: Before = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=25, help="At most so many.")] = 10,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find words in what people and the agent said.

    Each hit names its session, which `sessions history` opens.
    """
    args = given(query=query, session_key=session_key, role=role, after=after, before=before, limit=limit)
    _search(place(home), args, as_json)


@app.command()
def history(
    session_key: Annotated[str, typer.Argument(metavar="KEY", help="Such as telegram:42.")],
    around: Annotated[str | None, typer.Option(metavar="REF", help="The messages around this one.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")] = 20,
    offset: Annotated[int, typer.Option(metavar="N", min=0, help="Pass over so many of the latest.")] = 0,
    include_tools: Annotated[bool, typer.Option("--include-tools", help="With the calls of tools.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The latest messages of a session, or those around one."""
    args = given(session_key=session_key, around=around, limit=limit, offset=offset, include_tools=include_tools)
    _history(place(home), args, as_json)


@app.command()
def remove(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A session such as telegram:42, or a conversation's id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remove all that was said in a session, or in one conversation, for good."""
    from gateway.cli_forget import remove as go

    go(place(home), key, yes=yes, dry_run=dry_run, as_json=as_json)


def _search(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import used_wrongly
    from gateway.cli_output import one_line, print_json, prose, remark, say, when

    async def found() -> dict[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library:
            return await library.introspect.sessions.sessions_search_json(owner_call(), args)

    try:
        answer = asyncio.run(found())
    except ToolFailure as error:
        raise used_wrongly(str(error)) from error
    if as_json:
        print_json(answer)
        return
    for n, hit in enumerate(answer["hits"]):
        if n:
            say()
        say(hit["ref"], "bold")
        prose(" · ".join((one_line(hit["sessionKey"]), hit["role"], when(hit["at"], where.zone))), "  ")
        prose(one_line(hit["snippet"]), "  ")
    if not answer["hits"]:
        remark("Nothing found.")
    if answer["truncated"]:
        remark("There are more hits than are shown.")


def _history(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from gateway.cli_output import print_json, prose

    text, shape = asyncio.run(_session(where, args))
    if as_json:
        print_json(shape)
    else:
        prose(text)


async def _session(where: Place, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    from agent.types import ToolFailure
    from gateway.cli_errors import no_such
    from gateway.cli_library import opened, owner_call

    async with opened(where) as library:
        sessions, call = library.introspect.sessions, owner_call()
        try:
            return await sessions.sessions_history(call, args), await sessions.sessions_history_json(call, args)
        except ToolFailure as error:
            raise no_such(str(error)) from error
