"""What a command says when it cannot: one sentence, one exit code."""

from __future__ import annotations

from pathlib import Path

from gateway.cli_output import complain, print_json

FAILED, USED_WRONGLY, NO_SUCH_THING, NOT_RUNNING = 1, 2, 3, 4


class CliError(Exception):
    """`message` is what and where, `remedy` what to do; `code` is the word for it in JSON."""

    def __init__(self, exit_code: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code
        self.message = message
        self.remedy = remedy


def failed(code: str, message: str, remedy: str = "") -> CliError:
    return CliError(FAILED, code, message, remedy)


def used_wrongly(message: str, remedy: str = "") -> CliError:
    return CliError(USED_WRONGLY, "usage", message, remedy)


def no_such(message: str, remedy: str = "") -> CliError:
    return CliError(NO_SUCH_THING, "not_found", message, remedy)


def not_running(home: Path) -> CliError:
    return CliError(NOT_RUNNING, "not_running", f"No gateway runs on {home}.", "Start it with `hudhud run`.")


def not_reachable(home: Path) -> CliError:
    message = f"A program works on {home}, but it has no page and so cannot be asked."
    return CliError(
        NOT_RUNNING, "not_reachable", message, "Set `enabled = true` under [channels.inapp] and restart it."
    )


def show(error: CliError, *, as_json: bool) -> int:
    """Writes the error (with `--json` its document to stdout, else its sentence to stderr); returns the exit code."""
    if as_json:
        body = {"code": error.code, "message": error.message, "remedy": error.remedy}
        print_json({"error": body})
    else:
        complain(" ".join(filter(None, (error.message, error.remedy))))
    return error.exit_code


def explained(error: Exception) -> CliError:
    """Any failure of a command as what a person is told."""
    if isinstance(error, CliError):
        return error
    shown = getattr(error, "format_message", None)
    if shown is not None:
        return _wrong_use(error, shown())
    from gateway.client import GatewayGone, GatewayRefused

    if isinstance(error, GatewayRefused):
        exit_code = NO_SUCH_THING if error.status == 404 else FAILED
        return CliError(exit_code, error.code, error.message, error.remedy)
    if isinstance(error, GatewayGone):
        return CliError(NOT_RUNNING, "gateway_gone", str(error), "`hudhud status` says how it is.")
    return _known(error) or failed(
        "internal",
        f"Something went wrong inside Hudhud ({type(error).__name__}: {error}).",
        "Nothing that was saved is lost; with `--debug` the command says where.",
    )


def _wrong_use(error: Exception, message: str) -> CliError:
    """What the parser of the command line found; it names the command by its context."""
    if message.startswith("Usage:"):
        return used_wrongly(message)
    context = getattr(error, "ctx", None)
    command: str = getattr(context, "command_path", "hudhud")
    message = message.replace("Value error, ", "")
    message = message if message.endswith((".", "?")) else f"{message}."
    return used_wrongly(f"{command}: {message}", f"`{command} --help` says how it is used.")


def _known(error: Exception) -> CliError | None:
    """The failures that are sentences already; None for all others."""
    from agent.types import ProviderError
    from gateway.config import SettingsError
    from gateway.home import HomeError
    from gateway.http import HttpError
    from gateway.store import StoreError

    kinds: dict[type[Exception], str] = {
        SettingsError: "settings",
        HomeError: "home",
        StoreError: "store",
        HttpError: "http",
        ProviderError: "provider",
        ImportError: "library",
    }
    for kind, code in kinds.items():
        if isinstance(error, kind):
            message, stop, remedy = str(error).partition(". ")
            return failed(code, message + stop.rstrip(), remedy)
    if isinstance(error, OSError) and error.filename is not None:
        remedy = "Check its owner, its rights and the free space."
        return failed("file", f"{error.filename}: {error.strerror}.", remedy)
    return None
