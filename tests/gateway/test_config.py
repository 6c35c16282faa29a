"""A settings file with a fault: the key, what was found, what is allowed, and never a secret."""

from __future__ import annotations

import traceback
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config import Settings, SettingsError, home_folder, load_settings, machine_zone


def load(folder: Path, text: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def fault(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, text)
    return str(caught.value)


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "config.toml")
    assert settings == load(tmp_path, "") == Settings()
    assert settings.model.provider == "offline"
    assert settings.channel("inapp").enabled
    assert not settings.channel("telegram").enabled


@pytest.mark.parametrize(
    ("text", "key", "found", "allowed"),
    [
        ("[agent]\nworkers = 0", "agent.workers", "0", "greater than or equal to 1"),
        ("[agent]\nworkers = 'many'", "agent.workers", "'many'", "integer"),
        ("[memory]\nreflect = 'each night'", "memory.reflect", "'each night'", "Daily (03:00)"),
        ("[memory]\nconsolidate = 'Weekly (Foo 00:30)'", "memory.consolidate", "Foo", "Weekly (Mon 00:30)"),
        ("[memory]\nfolders = 'kb'", "memory.folders", "'kb'", "a list"),
        ("[memory]\nfolders = ['kb', ' ']", "memory.folders", "a list", "a list of paths"),
        ("[memory]\nfolders = ['~nobody-of-that-name/kb']", "memory.folders", "a list", "your own home folder"),
        ("[agent]\nidle_hours = -1", "agent.idle_hours", "-1", "greater than or equal to 0"),
        ("[agent]\nidle_hours = inf", "agent.idle_hours", "inf", "finite"),
        ("[agent]\ntimezone = 'Mars/Olympus'", "agent.timezone", "'Mars/Olympus'", "Asia/Riyadh"),
        ("[agent]\ntimezone = '../../etc/passwd'", "agent.timezone", "passwd", "IANA"),
        ("[agent]\nlanguage = 'tlh'", "agent.language", "'tlh'", "'ar' or 'en'"),
        ("[model]\nprovider = 'oracle'", "model.provider", "'oracle'", "'offline'"),
        ("[model]\ntimeout_seconds = 0", "model.timeout_seconds", "0", "greater than 0"),
        ("model = 'openai'", "model", "'openai'", "a table"),
        ("[[model]]\nname = 'x'", "model", "a list", "a table"),
        ("[readlog]\nkeep = 'some'", "readlog.keep", "'some'", "'all' or 'allowed'"),
        ("[heartbeat]\ntarget = 'mother'", "heartbeat.target", "'mother'", "`<channel>:<chat>`"),
        ("[heartbeat]\ntarget = 'pigeon:7'", "heartbeat.target", "'pigeon:7'", "`owner`"),
        ("[channels.inapp]\nport = 70000", "channels.inapp.port", "70000", "65535"),
        ("[channels.inapp]\nhost = '0.0.0.0'", "channels.inapp", "a table", "`token`"),
        ("[channels.telegram]\nallow = 5", "channels.telegram.allow", "5", "a list"),
        ("[channels.telegram]\nmode = 'webhooks'", "channels.telegram.mode", "'webhooks'", "'polling'"),
    ],
)
def test_a_wrong_value_names_key_found_and_allowed(
    tmp_path: Path, text: str, key: str, found: str, allowed: str
) -> None:
    said = fault(tmp_path, text)
    assert said.startswith(f"{tmp_path / 'config.toml'}: `{key}` is ")
    assert found in said.partition("; allowed: ")[0]
    assert allowed in said.partition("; allowed: ")[2]
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("speed = 3", "speed", "agent, "),
        ("[agent]\nnmae = 'x'", "agent.nmae", "name, timezone"),
        ("[channels.pigeon]\nenabled = true", "channels.pigeon", "inapp, telegram"),
        ("[channels.telegram]\ntokens = 'x'", "channels.telegram.tokens", "enabled, token"),
    ],
)
def test_an_unknown_key_is_refused_with_those_there_are(tmp_path: Path, text: str, key: str, allowed: str) -> None:
    said = fault(tmp_path, text)
    assert f"unknown key `{key}`" in said
    assert allowed in said


def test_each_fault_has_its_line(tmp_path: Path) -> None:
    said = fault(tmp_path, "speed = 3\n[agent]\nworkers = 0\n[model]\nprovider = 'x'")
    keys = [line.split("`")[1] for line in said.splitlines()]
    assert sorted(keys) == ["agent.workers", "model.provider", "speed"]


@pytest.mark.parametrize("raw", [b"[agent\nname=1", b"\xff\xfe", b"a = 1\na = 2", b"\x00"])
def test_a_file_that_is_no_toml_is_one_sentence(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(raw)
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(tmp_path / "config.toml")


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path / "config.toml")


SECRET = "sk-very-secret-value"


@pytest.mark.parametrize(
    "text",
    [
        f"[model]\napi_key = ['{SECRET}']",
        f"[model]\napi_key = {{ key = '{SECRET}' }}",
        f"[[model]]\napi_key = '{SECRET}'",
        f"[channels]\ntelegram = [{{ token = '{SECRET}' }}]",
        f"[channels.telegram]\ntoken = ['{SECRET}']\nspeed = 1",
        f"[channels.inapp]\nhost = '0.0.0.0'\nport = 'x'\ntoken = '{SECRET}'",
        f"[channels.telegram.token]\nvalue = '{SECRET}'",
        f"[model]\napi_key = '{SECRET}'\nprovider = 'x'",
        f"api_key = '{SECRET}'",
        "[agent]\ntimezone = 'env:HUDHUD_TEST_SECRET'",
        "[model]\nprovider = 'env:HUDHUD_TEST_SECRET'",
        "[agent]\nworkers = 'env:HUDHUD_TEST_SECRET'",
    ],
)
def test_no_fault_shows_a_secret(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDHUD_TEST_SECRET", SECRET)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path / "config.toml")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_settings_do_not_show_their_secrets(tmp_path: Path) -> None:
    settings = load(tmp_path, f"[model]\napi_key = '{SECRET}'\n[channels.telegram]\ntoken = '{SECRET}'")
    assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()
    assert settings.model.api_key.get_secret_value() == SECRET


def test_a_value_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDHUD_TEST_TOKEN", "1:abc")
    monkeypatch.setenv("HUDHUD_TEST_PORT", "9000")
    settings = load(
        tmp_path,
        "[channels.telegram]\ntoken = 'env:HUDHUD_TEST_TOKEN'\n[channels.inapp]\nport = 'env:HUDHUD_TEST_PORT'",
    )
    assert settings.channel("telegram").token.get_secret_value() == "1:abc"
    assert settings.channel("inapp").port == 9000


def test_a_variable_that_is_not_set_is_named_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUDHUD_TEST_NONE", raising=False)
    said = fault(tmp_path, "[channels.telegram]\ntoken = 'env:HUDHUD_TEST_NONE'")
    assert "[channels.telegram.token]" in said
    assert "HUDHUD_TEST_NONE, which is not set" in said


def test_ids_may_be_numbers_or_texts(tmp_path: Path) -> None:
    settings = load(tmp_path, "[channels.telegram]\nowner = 7\nallow = [8, '9']\ngroups = [-100]")
    telegram = settings.channel("telegram")
    assert (telegram.owner, telegram.allow, telegram.groups) == ("7", ("8", "9"), ("-100",))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
SECTIONS = st.sampled_from(["agent", "model", "readlog", "heartbeat", "channels"])


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(SECTIONS, VALUES | st.dictionaries(st.sampled_from(["name", "token", "inapp"]), VALUES)))
def test_whatever_stands_in_the_file_is_settings_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: object
) -> None:
    (tmp_path / "config.toml").write_bytes(b"")
    monkeypatch.setattr("gateway.config.tomllib.loads", lambda text: data)
    try:
        load_settings(tmp_path / "config.toml")
        said = ""
    except SettingsError as error:
        said = str(error)
    assert not said or "allowed" in said.lower() or "environment variable" in said


def test_folders_lie_beside_the_settings_or_where_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/sana")
    memory = load(tmp_path, "[memory]\nfolders = ['kb', '/srv/notes', '~/Notes', '../up']").memory
    assert memory.places(tmp_path) == (
        tmp_path / "kb",
        Path("/srv/notes"),
        Path("/home/sana/Notes"),
        tmp_path / "../up",
    )


def test_the_zone_is_the_setting_else_the_machines_else_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.model_validate({"agent": {"timezone": "Asia/Riyadh"}}).zone == ZoneInfo("Asia/Riyadh")
    monkeypatch.setenv("TZ", ":Africa/Cairo")
    assert machine_zone() == "Africa/Cairo"
    assert Settings().zone == ZoneInfo("Africa/Cairo")
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    assert machine_zone() == "UTC"


def test_the_home_is_the_option_else_the_variable_else_the_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HUDHUD_HOME", str(tmp_path / "b"))
    assert home_folder(str(tmp_path / "a")) == tmp_path / "a"
    assert home_folder(None) == tmp_path / "b"
    monkeypatch.delenv("HUDHUD_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_folder(None) == tmp_path / ".hudhud"
    assert home_folder("~/x") == tmp_path / "x"
