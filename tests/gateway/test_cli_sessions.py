"""`hudhud sessions` and `hudhud usage`: past sessions word for word, and what models cost; no gateway needed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from agent.types import Usage
from agent.usage import ModelCall
from gateway.store import Store
from tests.fakes.terminal import Shell


def talk(shell: Shell) -> str:
    """Two messages and their answers; the conversation."""
    conversation = shell("chat", "remember that my falcon is called Barq", "--json").json["conversation"]
    shell("chat", "remember that the owl is called Layl")
    return conversation


def test_a_hit_leads_to_its_session_and_its_neighbours(shell: Shell) -> None:
    conversation = talk(shell.prepared())
    found = shell("sessions", "search", "falcon", "--role", "user", "--json").json
    [hit] = found["hits"]
    assert hit["conversation"] == conversation
    assert (found["indexing"], found["truncated"]) == (False, False)
    shown = shell("sessions", "search", "falcon", "--role", "user").out
    assert shown.splitlines()[0] == hit["ref"]
    assert hit["sessionKey"] in shown

    session = shell("sessions", "history", hit["sessionKey"], "--limit", "2", "--json").json
    assert session["sessionKey"] == hit["sessionKey"]
    assert len(session["messages"]) == 2
    older = shell("sessions", "history", hit["sessionKey"], "--offset", str(session["next_offset"]), "--json").json
    assert older["messages"][0]["text"] == "remember that my falcon is called Barq"
    around = shell("sessions", "history", hit["sessionKey"], "--around", hit["ref"], "--limit", "1")
    assert "Barq" in around.out
    assert "Layl" not in around.out
    assert "-> success" in shell("sessions", "history", hit["sessionKey"], "--include-tools").out


def test_what_is_not_there_is_said(shell: Shell) -> None:
    shell.prepared()
    assert shell("sessions", "search", "xyzzy").out == ""
    assert shell("sessions", "search", "x", "--after", "tomorrow").code == 2
    assert shell("sessions", "search", "x", "--limit", "26").code == 2
    unknown = shell("sessions", "history", "telegram:404", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (3, "not_found")


def test_the_tool_takes_both_names_of_a_session_key(shell: Shell) -> None:
    talk(shell.prepared())
    key = shell("sessions", "search", "falcon", "--json").json["hits"][0]["sessionKey"]
    for name in ("session_key", "sessionKey"):
        said = shell("tool", "sessions_history", f'{{"{name}": "{key}"}}')
        assert said.code == 0
        assert "Barq" in said.out


def test_the_tool_tells_the_state_with_and_without_a_gateway(shell: Shell) -> None:
    shell.prepared()
    assert "no gateway runs" in shell("tool", "wolffish_status", "{}").out
    with shell.gateway():
        assert "running for" in shell("tool", "wolffish_status", "{}").out
    assert "memory.md" in shell("tool", "wolffish_list_files", "{}").out
    talk(shell)
    assert "memory_save" in shell("tool", "wolffish_performance", "{}").out


def spend(shell: Shell, *calls: ModelCall) -> None:
    async def write() -> None:
        store = Store(shell.home)
        await store.open()
        for call in calls:
            await store.add_usage(call, "t1", "c1", "person")
        await store.close()

    asyncio.run(write())


def test_what_models_cost_is_summed_by_model_and_period(shell: Shell) -> None:
    shell.prepared()
    assert shell("usage").out == ""
    now = datetime.now(UTC)
    tokens = Usage(input_tokens=1000, output_tokens=10, cache_read_tokens=5, cache_write_tokens=3, requests=1)
    spend(
        shell,
        ModelCall(now, "openai", "small", tokens, Decimal("0.25")),
        ModelCall(now, "openai", "small", tokens, Decimal("0.5")),
        ModelCall(now, "ollama", "local", tokens, Decimal(0)),
        ModelCall(now, "openai", "secret", tokens, None),
        ModelCall(now - timedelta(days=400), "openai", "old", tokens, Decimal(1)),
    )
    week = shell("usage", "--period", "week", "--json").json
    models = week.pop("models")
    assert week == {
        "period": "week",
        "requests": 4,
        "input_tokens": 4000,
        "output_tokens": 40,
        "cache_read_tokens": 20,
        "cache_write_tokens": 12,
        "cost_usd": 0.75,
        "unpriced_requests": 1,
    }
    assert {model["model"]: (model["requests"], model["cost_usd"]) for model in models} == {
        "small": (2, 0.75),
        "local": (1, 0.0),
        "secret": (1, 0.0),
    }
    assert shell("usage", "--period", "all", "--json").json["requests"] == 5
    day = f"{(now - timedelta(days=400)):%Y-%m-%d}"
    before = f"{(now - timedelta(days=300)):%Y-%m-%d}"
    old = shell("usage", "--before", before, "--json").json
    assert (old["period"], old["requests"], old["cost_usd"]) == (f"/{before}", 1, 1.0)
    table = shell("usage", "--period", "month").out
    assert "openai small" in table
    assert "$0.7500" in table
    assert "Without 1 requests" in table
    assert shell("usage", "--period", "year").code == 2
    assert shell("usage", "--after", day[:7]).code == 2
