"""`hudhud usage`: what model calls took and cost; no gateway needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agent.types import ToolFailure
from gateway.cli_errors import used_wrongly
from gateway.cli_library import opened, owner_call
from gateway.cli_options import Place
from gateway.cli_output import print_json, remark, say, table


def usage(place: Place, args: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints a line for each model and their sum. Raises CliError for days that are none."""
    try:
        found = asyncio.run(_found(place, args))
    except ToolFailure as error:
        raise used_wrongly(str(error)) from error
    if as_json:
        print_json(found)
    elif not found["requests"]:
        remark("No model was called in this time.")
    else:
        _show(found)


async def _found(place: Place, args: Mapping[str, Any]) -> dict[str, Any]:
    async with opened(place) as library:
        return await library.introspect.state.usage_report_json(owner_call(), args)


def _show(found: Mapping[str, Any]) -> None:
    numbers = ("requests", "input", "output", "cache read", "cache written", "cost")
    models: list[Mapping[str, Any]] = found["models"]
    rows = [(f"{model['provider']} {model['model']}".rstrip(), *_figures(model)) for model in models]
    if len(models) > 1:
        rows.append(("all", *_figures(found)))
    table(("model", *numbers), rows, right=numbers)
    if unpriced := found["unpriced_requests"]:
        say(f"Without {unpriced:,} requests whose price is not known.")


def _figures(part: Mapping[str, Any]) -> tuple[str, ...]:
    tokens = ("requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return (*(f"{part[name]:,}" for name in tokens), f"${part['cost_usd']:.4f}")
