"""`hudhud channels`: state, linking through a running gateway, logout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.terminal import FREE_PORT, Shell
from tests.fakes.whatsapp import Platform, installed

ON = f'{FREE_PORT}[heartbeat]\nenabled = false\n[channels.whatsapp]\nenabled = true\nowner = "15550009999"\n'


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    made = Platform()
    installed(monkeypatch, made)
    yield made
    made.close()


def test_without_a_gateway_every_channel_is_off(shell: Shell) -> None:
    shell.prepared()
    found = shell("channels", "status", "--json").json["channels"]
    assert {item["channel"] for item in found} >= {"inapp", "telegram", "whatsapp"}
    assert {item["state"] for item in found} == {"off"}
    said = shell("channels", "status")
    assert said.code == 0
    assert "hudhud run" in said.out
    assert shell("channels", "status", "--probe").code == 4


def test_a_phone_is_linked_through_the_running_gateway(shell: Shell, platform: Platform) -> None:
    shell.prepared(ON)
    with shell.gateway():
        assert state(shell)["state"] == "logged_out"
        said = shell("channels", "link", "whatsapp", "--json")
        assert (said.code, said.json["state"]) == (0, "linked")
        assert "15550001111" in said.json["detail"]
        assert state(shell, "--probe")["state"] == "connected"
        again = shell("channels", "link", "whatsapp")
        assert (again.code, again.out) == (0, "whatsapp is linked with +15550001111.\n")
        out = shell("channels", "logout", "whatsapp")
        assert (out.code, out.out, out.err) == (0, "whatsapp is logged out; its session is forgotten.\n", "")
        assert platform.logouts == 1
        assert state(shell)["state"] == "logged_out"


def test_a_wrong_number_and_a_wrong_channel_are_said(shell: Shell, platform: Platform) -> None:
    shell.prepared(ON)
    with shell.gateway():
        wrong = shell("channels", "link", "whatsapp", "--phone", "0123")
        assert wrong.code == 1
        assert "country code" in wrong.err
        assert shell("channels", "link", "telegram").code == 3
        assert shell("channels", "link", "pigeon").code == 3
    assert platform.clients == []


def test_a_phone_is_linked_without_a_gateway(shell: Shell, platform: Platform) -> None:
    shell.prepared(ON.replace("enabled = true\nowner", "enabled = false\nowner"))
    said = shell("channels", "link", "whatsapp")
    assert said.code == 0
    assert "is linked with" in said.out
    assert "enabled = true" in said.out
    assert all(client.stopped for client in platform.clients)
    assert json.loads(shell("channels", "status", "--json").out)["channels"]


def state(shell: Shell, *options: str) -> Any:
    found = shell("channels", "status", "--json", *options).json["channels"]
    return next(item for item in found if item["channel"] == "whatsapp")
