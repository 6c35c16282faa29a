"""`hudhud doctor`: what is wrong with a home, and what to do about it."""

from __future__ import annotations

from gateway.cli_errors import CliError, no_such
from gateway.cli_output import painted, print_json, say
from gateway.client import Client
from gateway.doctor import Finding, examine
from gateway.home import CONFIG, read_running

FAULTS = 1
_COLOURS = {"good": "green", "warning": "yellow", "fault": "red"}


def doctor(home_path: str | None, *, fix: bool, as_json: bool) -> int:
    """The exit code: 0 when nothing is faulty. Raises CliError when there is no home."""
    from gateway.config import home_folder

    home = home_folder(home_path)
    if not (home / CONFIG).exists():
        raise no_such(f"There is no home at {home}.", "Make one with `hudhud init`, or name another with --home.")
    facts = read_running(home)
    running = None
    if facts is not None:
        try:
            running = Client(facts["address"], facts["token"]).get("/api/status")
        except CliError:
            running = None  # it holds the home and does not answer; what follows says that nothing answers
    found: list[Finding] = []
    mended: list[Finding] = []
    for finding in examine(home, running):
        if fix and finding.mend is not None:
            finding.mend()
            mended.append(finding)
        else:
            found.append(finding)
        if not as_json:
            _show(finding, mended=bool(mended) and mended[-1] is finding)
    faults = sum(finding.state == "fault" for finding in found)
    if as_json:
        shapes = [finding.as_json() for finding in found]
        print_json({"faults": faults, "findings": shapes, "mended": [finding.as_json() for finding in mended]})
    elif not fix and any(finding.mend for finding in found):
        say()
        say("`hudhud doctor --fix` puts right what it can.")
    return FAULTS if faults else 0


def _show(finding: Finding, *, mended: bool) -> None:
    state = "mended" if mended else finding.state
    say(f"{painted(f'{state:<8}', _COLOURS.get(state, 'green'))} {finding.area:<10} {finding.what}")
    if finding.remedy and not mended:
        say(finding.remedy, head=" " * 20)
