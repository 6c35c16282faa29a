"""`hudhud tool`: one call, exactly as the model's would be: checked, gated, run, written down."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from gateway.cli_errors import failed, no_such, used_wrongly
from gateway.cli_library import opened, owner_call, show_channels
from gateway.cli_options import Place
from gateway.cli_output import print_json, say

if TYPE_CHECKING:
    from agent.amygdala import Amygdala
    from agent.cerebellum import Cerebellum
    from agent.types import CallContext, ToolCall, ToolFunction, ToolResult, ToolSpec
    from gateway.library import Library


def tool(place: Place, name: str, arguments: str, *, consent: bool, as_json: bool) -> None:
    """Prints what the model would read. Raises CliError when the call is wrong, blocked, denied or failed."""
    try:
        args: Any = json.loads(arguments)
    except ValueError as error:
        raise used_wrongly(f"The arguments of {name} are not JSON ({error}).", _EXAMPLE) from error
    if not isinstance(args, dict):
        raise used_wrongly(f"The arguments of {name} must be a JSON object.", _EXAMPLE)
    result = asyncio.run(_called(place, name, cast("dict[str, Any]", args), consent))
    if not result.ok:
        raise failed(result.outcome, result.text)
    if as_json:
        print_json({"name": name, "outcome": result.outcome, "took_seconds": result.took_seconds, "text": result.text})
    else:
        say(result.text.rstrip("\n"))


_EXAMPLE = """Write for example: hudhud tool memory_search '{"query": "passport"}'"""


async def _called(place: Place, name: str, args: dict[str, Any], consent: bool) -> ToolResult:
    from agent.amygdala import shown
    from agent.cerebellum import BUILT_IN, Cerebellum
    from agent.motor import Motor
    from agent.types import ToolCall, Turn
    from agent.wernicke import Wernicke

    async with opened(place, fresh=True) as library:
        show_channels(place, library)
        workspace = place.home / "workspace"
        functions = {**library.functions(), "schedule": await _schedule(place, library)}
        cerebellum = Cerebellum(functions, (BUILT_IN, workspace / "skills"), workspace=workspace)
        spec = cerebellum.spec(name)
        if spec is None:
            names = ", ".join(spec.name for spec in cerebellum.tools("owner"))
            raise no_such(f"There is no tool {name}.", f"There are {names}.")
        context = owner_call()
        call = Wernicke().check_call(ToolCall(context.turn_id, name, args), (spec,))
        if call.fault is not None:
            raise used_wrongly(call.fault)
        turn = Turn(context.turn_id, "", "", "", context.viewer.person, context.now)
        verdict = _gate(place, cerebellum).classify(call, spec, turn)
        if verdict.decision == "block":
            raise failed("blocked", f"The safety gate blocks this call: {verdict.reason}")
        if verdict.decision == "confirm" and not consent:
            what = shown(call, spec, await _preview(cerebellum, context, call, spec))
            raise failed("denied", f"This needs consent: {verdict.reason} {what}", "Add --yes to consent.")
        motor = Motor(cerebellum, place.home / "workspace", lambda: context.now)
        try:
            return await motor.run_task(turn, call, spec)
        finally:
            motor.end_task(turn, "done")


async def _preview(cerebellum: Cerebellum, context: CallContext, call: ToolCall, spec: ToolSpec) -> str:
    """What the tool says that the call would do. Raises CliError when it can do nothing."""
    from agent.types import ToolFailure

    try:
        return await cerebellum.execute_tool(replace(context, preview=True), call) if spec.previews else ""
    except ToolFailure as failure:
        raise failed("failed", str(failure)) from failure


async def _schedule(place: Place, library: Library) -> dict[str, ToolFunction]:
    """The tools of the clock, on a clock that only tells the time."""
    from agent.capabilities.schedule.tools import Schedule
    from gateway.chores import listed_jobs
    from gateway.clock import Clock
    from gateway.library import utc_now
    from gateway.schedules import OwnersSchedules

    schedules = OwnersSchedules(place.home / "workspace", library.store, runs=False)
    clock = Clock(
        place.home, place.settings, library.store, utc_now, listed_jobs(place.settings.memory), schedules=schedules
    )
    await clock.runner.reload()
    return Schedule(schedules, place.zone).functions()


def _gate(place: Place, cerebellum: Cerebellum) -> Amygdala:
    from agent.amygdala import Amygdala

    return Amygdala(cerebellum.patterns, place.home / "workspace", confirm=place.settings.safety.confirm)
