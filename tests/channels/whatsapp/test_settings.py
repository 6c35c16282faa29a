"""What may stand under `[channels.whatsapp]`, and what stops the start with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.whatsapp.settings import WhatsAppSettings
from gateway.config import Settings, SettingsError, load_settings
from gateway.people import People

FRIEND = "15550002222@s.whatsapp.net"


@pytest.mark.parametrize(
    "written",
    [
        "15550002222",
        15550002222,
        "+1 555 000 2222",
        "+1 (555) 000-2222",
        "0015550002222",
        "١٥٥٥٠٠٠٢٢٢٢",
        "15550002222@s.whatsapp.net",
        "15550002222:7@s.whatsapp.net",
        "15550002222@c.us",
        "\u200e+1 555 000 2222\u200f",
    ],
)
def test_a_number_may_be_written_in_any_way(written: object) -> None:
    """B36."""
    given = WhatsAppSettings.model_validate({"owner": written, "allow": [written]})
    assert given.owner == FRIEND
    assert given.allow == (FRIEND,)
    assert given.home_chat == FRIEND


def test_a_hidden_id_and_groups_may_stand_there() -> None:
    given = WhatsAppSettings.model_validate(
        {"allow": ["77001122334455:3@lid"], "groups": ["120363000000000001", "1555-1400@g.us"]}
    )
    assert given.allow == ("77001122334455@lid",)
    assert given.groups == ("120363000000000001@g.us", "1555-1400@g.us")
    assert given.reachable_chats == {*given.allow, *given.groups}


@pytest.mark.parametrize(
    "written",
    [
        'allow = [""]',
        'allow = ["0501234567"]',
        'owner = "Sara"',
        'allow = ["120363@g.us"]',
        'groups = ["family"]',
        'phone = "12"',
    ],
)
def test_what_is_no_number_is_refused(tmp_path: Path, written: str) -> None:
    """A blank or a part of a number must not let anybody in."""
    file = tmp_path / "config.toml"
    file.write_text(f"[channels.whatsapp]\n{written}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(file)
    assert "channels.whatsapp." in str(caught.value)
    assert "such as" in str(caught.value)


def test_rights_come_from_the_whole_number_only() -> None:
    people = People(
        Settings.model_validate({"channels": {"whatsapp": {"enabled": True, "allow": ["+1 555 000 2222"]}}})
    )
    assert people.rights("whatsapp", FRIEND) == "allowed"
    assert people.rights("whatsapp", "5550002222@s.whatsapp.net") == "stranger"
    assert people.rights("whatsapp", "") == "stranger"
