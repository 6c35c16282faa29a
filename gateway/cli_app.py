"""The commands: one thin function each; the big groups and what each command does are in the other `cli_*.py`."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.main import get_command

from gateway import (
    cli_channels,
    cli_conversations,
    cli_heartbeat,
    cli_import,
    cli_index,
    cli_memory,
    cli_people,
    cli_queue,
    cli_service,
    cli_sessions,
)
from gateway.cli_help import HELP
from gateway.cli_options import After, Before, Home, Json, given, place


class _Root(TyperGroup):
    def get_help(self, ctx: Any) -> str:
        return HELP.rstrip()


app = typer.Typer(
    name="hudhud",
    cls=_Root,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, group in {
    "memory": cli_memory.app,
    "conversations": cli_conversations.app,
    "sessions": cli_sessions.app,
    "import": cli_import.app,
    "index": cli_index.app,
    "people": cli_people.app,
    "queue": cli_queue.app,
    "heartbeat": cli_heartbeat.app,
    "channels": cli_channels.app,
    "service": cli_service.app,
    "procedure": cli_heartbeat.procedures,
}.items():
    app.add_typer(group, name=name, no_args_is_help=True)


def run_command(arguments: Sequence[str]) -> int:
    """Runs one command; its exit code. Raises what the command raises, and the parser's errors."""
    code: Any = get_command(app).main(args=list(arguments), prog_name="hudhud", standalone_mode=False)
    return code if isinstance(code, int) else 0


@app.command()
def init(
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, take the defaults.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask a few questions, then write config.toml and the workspace.

    What is there already is never overwritten.
    """
    from gateway.cli_init import init as make
    from gateway.config import home_folder

    make(home_folder(home), ask=not yes, as_json=as_json)


@app.command()
def run(
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more than warnings on stderr.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run the gateway until Ctrl-C.

    It prints one line with the address to open; what happens is written to workspace/logs. A second Ctrl-C ends it
    at once.
    """
    gc.disable()  # until the gateway is ready: see cli_run
    from gateway.cli_run import run as serve

    serve(place(home), verbose=verbose, as_json=as_json)


@app.command()
def status(
    link: Annotated[bool, typer.Option("--link", help="Print a fresh address of the page, good once.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What runs since when, the channels, the queue, the next jobs."""
    from gateway.cli_status import status as show

    show(place(home), link=link, as_json=as_json)


@app.command()
def usage(
    period: Annotated[
        Literal["today", "yesterday", "week", "month", "all"], typer.Option(help="Which days; week is seven, month 30.")
    ] = "today",
    after: After = None,
    before: Before = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What model calls took and cost.

    Days given with --after and --before count instead of the period.
    """
    from gateway.cli_usage import usage as show

    show(place(home), given(period=period, after=after, before=before), as_json=as_json)


@app.command()
def chat(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="One message; a chat otherwise.")] = None,
    home: Home = None,
    as_json: Json = False,
) -> int:
    """One message and its answer, or a chat in the terminal.

    It goes through the running gateway; when none runs, it is answered right here.
    """
    from gateway.cli_chat import chat as talk

    return talk(place(home), text, as_json=as_json)


@app.command()
def tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tool, such as memory_search.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help='Its arguments, such as \'{"query": "passport"}\'.')],
    yes: Annotated[bool, typer.Option("--yes", help="Consent to what the safety gate would ask about.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Call one tool as the model would, and print its result.

    With the owner's rights, and through the safety gate.
    """
    from gateway.cli_tool import tool as call

    call(place(home), name, arguments, consent=yes, as_json=as_json)


@app.command()
def mcp(home: Home = None) -> None:
    """Serve the retrieval tools to an MCP client, on stdin and stdout.

    For programs such as editors and other agents; it works beside a running gateway.
    """
    from gateway.cli_mcp import serve

    serve(place(home))


@app.command()
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The new file, such as hudhud-2027-01-31.tar.gz.")],
    with_credentials: Annotated[
        bool, typer.Option("--with-credentials", help="With the logins of WhatsApp and Telegram.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Copy the whole home into one file, while it runs or not.

    The index is left out: it is built anew.
    """
    from gateway.cli_backup import backup as copy

    copy(place(home), file, with_credentials=with_credentials, as_json=as_json)


@app.command()
def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `hudhud backup` wrote.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Make a home of a backup, in a new or empty folder."""
    from gateway.cli_backup import restore as make
    from gateway.config import home_folder

    make(file, home_folder(home), as_json=as_json)


@app.command()
def tasks(
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="One task with its steps; the latest otherwise.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="At most so many.")] = 20,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What the agent did: a task for each turn that called tools."""
    from gateway.cli_tasks import tasks as show

    show(place(home), id, limit=limit, as_json=as_json)


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Put right what can be put right here.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> int:
    """Look the home over: settings, rights, disk, database, logs, jobs, channels.

    Each fault comes with what to do about it; the exit code is 1 when there is one.
    """
    from gateway.cli_doctor import doctor as look

    return look(home, fix=fix, as_json=as_json)
