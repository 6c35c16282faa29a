"""The door of the command line: quick help, and every failure as one sentence with its exit code.

Nothing is imported before it is needed; the commands themselves are in the `cli_*.py` files.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

FAILED, USED_WRONGLY, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 good, 1 failed, 2 used wrongly, 3 there is no such thing,
    4 the gateway is not running."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    os.umask(0o077)  # whatever a command makes (databases, logs, files) is its owner's alone
    for stream in (sys.stdout, sys.stderr):
        # Half characters and a terminal that is not UTF-8 must not end a command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not given or given in (["--help"], ["-h"]):
        from gateway.cli_help import HELP

        (sys.stdout if given else sys.stderr).write(HELP)
        return 0 if given else USED_WRONGLY
    options = given[: given.index("--")] if "--" in given else given
    debug = "--debug" in options
    if debug:
        given.remove("--debug")
    return _run(given, as_json="--json" in options, debug=debug)


def _run(given: list[str], *, as_json: bool, debug: bool) -> int:
    try:
        import logging

        from gateway.cli_app import run_command

        logging.basicConfig(
            level=logging.INFO if debug else logging.ERROR, format="%(levelname)s %(name)s: %(message)s"
        )
        code = run_command(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the top: whatever it was becomes one sentence
        from gateway.cli_errors import explained, show

        if debug:
            import traceback

            traceback.print_exc()
        return show(explained(error), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
