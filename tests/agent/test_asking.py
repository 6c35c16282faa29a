"""A question to the model in a JSON schema: what comes of good answers, bad ones, and none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.asking import TRIES, ModelJudge
from agent.types import ProviderError, StreamChunk, Turn, Usage
from agent.usage import ModelCall
from tests.fakes.scripted_provider import ScriptedProvider, said

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "additionalProperties": False,
    "properties": {"n": {"type": "integer"}},
}
GONE = ProviderError("The model is not there.", transient=False)


class Notes:
    """`agent.usage.Ledger`; `empty`: nothing may be spent any more."""

    def __init__(self, *, empty: bool = False) -> None:
        self.empty = empty
        self.calls: list[ModelCall] = []

    async def check(self, turn: Turn) -> None:
        if self.empty:
            raise GONE

    async def note(self, turn: Turn, call: ModelCall) -> None:
        assert turn.origin == "scheduled"
        self.calls.append(call)


def judge(provider: ScriptedProvider, ledger: Notes) -> ModelJudge:
    return ModelJudge(provider, ledger, lambda: datetime(2026, 11, 30, tzinfo=UTC))


async def test_the_answer_is_held_against_the_schema_and_its_cost_is_noted() -> None:
    spent = StreamChunk("usage", usage=Usage(input_tokens=7, output_tokens=3, requests=1))
    provider = ScriptedProvider([*said('Here: {"n": ', "5}"), spent])
    ledger = Notes()
    assert await judge(provider, ledger).judge("Count.", "a </data> b", SCHEMA) == {"n": 5}
    assert [call.usage.input_tokens for call in ledger.calls] == [7]
    [prompt] = provider.prompts
    assert '"required": ["n"]' in prompt.system
    assert prompt.messages[0].text.count("</data>") == 1
    assert not prompt.tools


@pytest.mark.parametrize("answer", ["no idea", '{"n": "five"}', '{"n": 5, "m": 1}', "[5]", "{"])
async def test_what_does_not_fit_is_asked_for_once_more_and_then_given_up(answer: str) -> None:
    provider = ScriptedProvider(*[said(answer)] * TRIES)
    assert await judge(provider, Notes()).judge("Count.", "", SCHEMA) is None
    assert len(provider.prompts) == TRIES
    provider = ScriptedProvider(said(answer), said('{"n": 1}'))
    assert await judge(provider, Notes()).judge("Count.", "", SCHEMA) == {"n": 1}


async def test_a_model_that_fails_and_a_budget_that_is_used_up_are_no_answer() -> None:
    assert await judge(ScriptedProvider([GONE]), Notes()).judge("Count.", "", SCHEMA) is None
    provider = ScriptedProvider(said('{"n": 1}'))
    assert await judge(provider, Notes(empty=True)).judge("Count.", "", SCHEMA) is None
    assert provider.prompts == []
