"""The gate: rights first, block beats confirm beats safe."""

from __future__ import annotations

from itertools import permutations

import pytest

from agent.amygdala import Amygdala, shown
from agent.types import GatePattern, ToolCall, ToolSpec
from tests.fakes.turns import GUEST, a_turn

SEND = ToolSpec("send", "Sends.", {"type": "object"})
LOOK = ToolSpec("look", "Looks.", {"type": "object"}, read_only=True, rights="allowed")
BLOCK = GatePattern("format.*disk", "block", "It would wipe a disk.", frozenset({"send"}))
CONFIRM = GatePattern("DISK", "confirm", "It touches a disk.", frozenset({"send"}))
OTHERS = GatePattern(".", "block", "Another capability's.", frozenset({"other"}))


def call(name: str = "send", **args: object) -> ToolCall:
    return ToolCall("1", name, args)


@pytest.mark.parametrize("order", list(permutations([BLOCK, CONFIRM, OTHERS])))
def test_block_beats_confirm_beats_safe_in_any_order(order: tuple[GatePattern, ...]) -> None:
    gate = Amygdala(lambda: order)
    blocked = gate.classify(call(text="Format the disk"), SEND, a_turn())
    assert (blocked.decision, blocked.reason) == ("block", "It would wipe a disk.")
    confirmed = gate.classify(call(text="read the disk"), SEND, a_turn())
    assert (confirmed.decision, confirmed.reason) == ("confirm", "It touches a disk.")
    assert gate.classify(call(text="hello"), SEND, a_turn()).decision == "safe"


def test_a_pattern_applies_to_its_own_tools_unless_it_is_global() -> None:
    asked = call("look", where="the disk")
    assert Amygdala(lambda: [CONFIRM]).classify(asked, LOOK, a_turn()).decision == "safe"
    everywhere = GatePattern("disk", "confirm", "It touches a disk.", None)
    assert Amygdala(lambda: [everywhere]).classify(asked, LOOK, a_turn()).decision == "confirm"


def test_strings_are_searched_at_any_depth() -> None:
    nested = call(parts=[{"inner": ["x", {"deep": "format my disk"}]}], count=3)
    assert Amygdala(lambda: [BLOCK]).classify(nested, SEND, a_turn()).decision == "block"


def test_a_tool_of_the_owner_is_blocked_for_others_whatever_it_says() -> None:
    verdict = Amygdala(lambda: []).classify(call(text="hi", approved=True), SEND, a_turn(person=GUEST))
    assert verdict.decision == "block"
    assert "owner" in verdict.reason
    assert Amygdala(lambda: []).classify(call("look"), LOOK, a_turn(person=GUEST)).decision == "safe"


def test_what_cannot_be_searched_in_time_must_be_confirmed() -> None:
    slow = GatePattern(r"(a|aa|a?a)+$", "block", "Slow.", None)
    verdict = Amygdala(lambda: [slow]).classify(call(text="a" * 60 + "b"), SEND, a_turn())
    assert verdict.decision == "confirm"
    assert "in time" in verdict.reason


def test_the_owner_sees_invisible_characters() -> None:
    text = shown(ToolCall("1", "send", {"text": "rm\u200b -rf \u202egnp.sh", "name": "سارة"}))
    assert "rm\\u{200b} -rf \\u{202e}gnp.sh" in text
    assert "سارة" in text
    assert text.startswith("send {")
