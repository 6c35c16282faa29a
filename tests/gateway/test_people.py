"""Rights come from platform ids in the settings; names never count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Address, InboundMessage
from gateway.config import Settings
from gateway.people import People

SETTINGS = {"channels": {"telegram": {"enabled": True, "owner": 7, "allow": [8]}}}


def people(**telegram: object) -> People:
    return People(Settings.model_validate({"channels": {"telegram": {**SETTINGS["channels"]["telegram"], **telegram}}}))


def test_rights_are_those_of_the_id_on_its_own_channel() -> None:
    known = people()
    assert known.rights("telegram", "7") == "owner"
    assert known.rights("telegram", "8") == "allowed"
    assert known.rights("inapp", "owner") == "owner"
    assert known.rights("inapp", "7") == "stranger"
    assert known.rights("telegram", "owner") == "stranger"


@given(st.text())
def test_everyone_else_is_a_stranger(sender: str) -> None:
    assert people().rights("telegram", sender) == {"7": "owner", "8": "allowed"}.get(sender, "stranger")


def test_without_an_owner_nobody_is_the_owner_of_a_platform() -> None:
    assert people(owner="").rights("telegram", "") == "stranger"


def test_a_name_gives_no_rights_and_the_clock_speaks_for_the_owner() -> None:
    message = InboundMessage("telegram", "9", "1", "9", "7", "hi", datetime.now(UTC))
    assert people().rights_of(message) == "stranger"
    tick = InboundMessage("heartbeat", "job", "1", "clock", "clock", "hi", datetime.now(UTC), origin="scheduled")
    assert people().rights_of(tick) == "owner"


def test_the_owners_home_is_the_channel_they_carry_along_else_the_page() -> None:
    assert people().home() == Address("telegram", "7")
    assert people(enabled=False).home() == Address("inapp", "home")
    assert people(owner="").home() == Address("inapp", "home")


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("owner", Address("telegram", "7")),
        ("telegram:-100", Address("telegram", "-100")),
        ("none", None),
        ("pigeon:7", None),
        ("telegram:", None),
        ("telegram", None),
        ("", None),
    ],
)
def test_a_target_is_an_address_or_nothing(target: str, address: Address | None) -> None:
    assert people().address(target) == address
