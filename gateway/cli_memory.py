"""`hudhud memory`: search, recall and keep what is remembered, and the jobs on it; no gateway needed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gateway.cli_options import After, Before, Home, Json, Place, given, place

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from gateway.cli_errors import CliError

app = typer.Typer(help="What is remembered: find it, open it, add to it.")


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='The words; "quoted" ones must stand together.')],
    sources: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only these, such as conversation,knowledge,doc.")
    ] = None,
    after: After = None,
    before: Before = None,
    channel: Annotated[str | None, typer.Option(metavar="NAME", help="Only this channel.")] = None,
    chat: Annotated[str | None, typer.Option(metavar="ID", help="Only this chat.")] = None,
    sender: Annotated[str | None, typer.Option(metavar="NAME", help="Only from this person, by name or id.")] = None,
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Only user, assistant, owner, system or tool.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="At most so many.")] = 15,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find messages, facts and files by words.

    The best come first, each with a reference that `memory get` opens.
    """
    args = given(
        query=query,
        sources=sources,
        after=after,
        before=before,
        channel=channel,
        chat=chat,
        sender=sender,
        role=role,
        limit=limit,
    )
    _search(place(home), args, as_json)


@app.command()
def get(
    ref: Annotated[str, typer.Argument(metavar="REF", help="Such as conversation:ID#3, task:ID or file:memory.md#L4.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=500, help="Records of a whole conversation.")] = 50,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print what stands behind a reference."""
    _get(place(home), ref, limit, as_json)


@app.command()
def save(
    fact: Annotated[str, typer.Argument(metavar="FACT", help="One sentence that can stand alone.")],
    type: Annotated[
        Literal["projects", "people", "preferences", "technical", "decisions"], typer.Option(help="What it is about.")
    ] = "technical",
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="The section it belongs to.")] = None,
    replaces: Annotated[
        str | None, typer.Option(metavar="REF", help="A reference, or the old sentence, whose place it takes.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Keep a fact, unless it is known already.

    It is written to the knowledge files in workspace/brain/hippocampus/knowledge.
    """
    _save(place(home), given(fact=fact, type=type, topic=topic, replaces=replaces), as_json)


@app.command()
def forget(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A reference, or the sentence to forget, in quotes.")],
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remove something remembered, after showing it.

    Messages go for good; of a file the old version is kept in workspace/.trash.
    """
    from gateway.cli_forget import forget as go

    go(place(home), what, yes=yes, dry_run=dry_run, as_json=as_json)


@app.command()
def recall(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A question; «last week», «in November» count as time.")
    ],
    k: Annotated[int, typer.Option("--k", metavar="N", min=1, max=100, help="At most so many.")] = 10,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="From this day on: 2025-11-27, 30d, words.")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Up to this day.")] = None,
    around: Annotated[str | None, typer.Option(metavar="WHEN", help="This day and three either side.")] = None,
    kind: Annotated[
        Literal["world", "experience", "opinion", "observation"] | None, typer.Option(help="Only this kind.")
    ] = None,
    entity: Annotated[str | None, typer.Option(metavar="NAME", help="Only about this person or thing.")] = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, max=20_000, help="So long at most in all.")] = 1_200,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Recall what is known of somebody or something.

    Facts and opinions, now or at a time, each with its kind, day, confidence and source; the best come first.
    """
    args = given(
        query=query, k=k, since=since, until=until, around=around, kind=kind, entity=entity, max_tokens=max_tokens
    )
    _recall(place(home), args, as_json)


@app.command()
def retain(
    bullet: Annotated[str, typer.Argument(metavar="BULLET", help="Such as: O(c=0.90) @Peter: Prefers tea.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Add one fact to today's log.

    TYPE [@Entity ...]: text, with TYPE W (world), B (what was done), O (opinion) or S (summary).
    """
    _retain(place(home), bullet, as_json)


@app.command()
def reflect(
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Only days from here on: 7d, 2025-11-27.")] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Bring entity pages and opinions up to date.

    Facts are taken from the days' logs; what you wrote stays as it is. A second run changes nothing.
    """
    _reflect(place(home), given(since=since), as_json)


@app.command()
def consolidate(
    week: Annotated[str | None, typer.Option(metavar="YYYY-Www", help="This week, made or not.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="All weeks from here on, made or not.")] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Sum up the weeks that have ended.

    Without options those that were not summed up yet, each once.
    """
    _consolidate(place(home), week, since, as_json)


def _recall(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import used_wrongly
    from gateway.cli_output import one_line, print_json, prose, remark, say

    async def found() -> dict[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library:
            return await library.memory.recall_json(owner_call(), args)

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
        sure = "" if hit["confidence"] is None else f"confidence {hit['confidence']:.2f}"
        about = [hit["timestamp"], hit["kind"], ", ".join(hit["entities"]), sure]
        say(f"file:{hit['source']}", "bold")
        prose(" · ".join(one_line(part) for part in about if part), "  ")
        prose(one_line(hit["content"]), "  ")
    if not answer["hits"]:
        remark("Nothing is remembered of that.")


def _retain(where: Place, bullet: str, as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import used_wrongly
    from gateway.cli_output import print_json, say

    async def kept() -> Mapping[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where) as library:
            return await library.memory.retain_json(owner_call(), {"bullet": bullet})

    try:
        answer = asyncio.run(kept())
    except ToolFailure as error:
        raise used_wrongly(str(error)) from error
    if as_json:
        print_json(answer)
    else:
        say(f"{'Kept' if answer['status'] == 'saved' else 'Known already'}: {answer['ref']}")


def _reflect(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from gateway.cli_errors import used_wrongly

    async def done() -> Mapping[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library, library.model(where.settings):
            return await library.memory.reflect_json(owner_call(), args)

    _print_done(_run_job(done, used_wrongly), as_json)


def _consolidate(where: Place, week: str | None, since: str | None, as_json: bool) -> None:
    from gateway.cli_errors import used_wrongly

    async def done() -> Mapping[str, Any]:
        from gateway.cli_library import opened

        async with opened(where, fresh=True) as library, library.model(where.settings):
            return (await library.reflection.consolidate_named(week, since)).as_json()

    _print_done(_run_job(done, used_wrongly), as_json)


def _run_job(
    job: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]], used_wrongly: Callable[[str], CliError]
) -> Mapping[str, Any]:
    from agent.types import ToolFailure

    try:
        return asyncio.run(job())
    except ToolFailure as error:
        raise used_wrongly(str(error)) from error


def _print_done(answer: Mapping[str, Any], as_json: bool) -> None:
    """What a job changed, a page a line; what it refused and what is not well-formed are remarks."""
    from gateway.cli_output import complain, print_json, remark, say

    if as_json:
        print_json(dict(answer))
        return
    if answer["taken"]:
        say(f"Facts taken from the days: {answer['taken']}")
    for page in answer["changed"]:
        say(f"Changed: {page}")
    for reason in answer["refused"]:
        complain(f"Refused: {reason}.")
    for fault in answer["faults"]:
        complain(f"{fault['file']}:{fault['line']}: {fault['reason']}.")
    if not answer["taken"] and not answer["changed"]:
        remark("Nothing new.")


def _search(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import used_wrongly
    from gateway.cli_output import one_line, print_json, prose, remark, say, when

    async def found() -> dict[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library:
            return await library.introspect.memory_search_json(owner_call(), args)

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
        who = hit["sender"] or (hit["role"] if hit["channel"] else "")
        about = [hit["channel"] or hit["source"], who, hit["title"], when(hit["at"], where.zone)]
        say(hit["ref"], "bold")
        prose(" · ".join(one_line(part) for part in about if part), "  ")
        prose(one_line(hit["snippet"]), "  ")
    if not answer["hits"]:
        remark(answer["hint"] or "Nothing found.")
    if answer["indexing"]:
        remark("The index is still being built: there may be more.")


def _get(where: Place, ref: str, limit: int, as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import no_such
    from gateway.cli_output import print_json, say

    async def found() -> str:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library:
            return await library.introspect.memory_get(owner_call(), {"ref": ref, "limit": limit})

    try:
        text = asyncio.run(found())
    except ToolFailure as error:
        raise no_such(str(error)) from error
    if as_json:
        print_json({"ref": ref, "text": text})
    else:
        say(text.rstrip("\n"))


def _save(where: Place, args: Mapping[str, Any], as_json: bool) -> None:
    from agent.types import ToolFailure
    from gateway.cli_errors import no_such, used_wrongly
    from gateway.cli_output import print_json, say

    if not str(args["fact"]).strip():
        raise used_wrongly("hudhud memory save: the fact is empty.", "Give one sentence that can stand alone.")

    async def saved() -> Mapping[str, Any]:
        from gateway.cli_library import opened, owner_call

        async with opened(where, fresh=True) as library:
            return await library.introspect.memory_save_json(owner_call(), args)

    try:
        answer = asyncio.run(saved())
    except ToolFailure as error:
        raise (no_such if "replaces" in args else used_wrongly)(str(error)) from error
    if as_json:
        print_json(answer)
        return
    words = {"saved": "Saved", "known": "Known already", "replaced": "Replaced"}
    say(f"{words[answer['status']]}: {answer['ref']}")
