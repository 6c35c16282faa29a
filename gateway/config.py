"""Typed settings. A bad `config.toml` names the key, what was found and what is allowed."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, create_model, field_validator

from channels.registry import CHANNELS, settings_class

ProviderName = Literal["offline", "openai"]


class SettingsError(Exception):
    """One or more settings are wrong; `str()` names each key, what was found, what is allowed, one a line."""


class Section(BaseModel):
    """A table of config.toml: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentSettings(Section):
    name: str = "Hudhud"
    timezone: str = Field(default="", description="IANA name; empty: the machine's zone")
    language: str = Field(default="", description="the language of notices, `ar` or `en`; empty: the message's own")
    workers: int = Field(default=8, ge=1, le=64, description="turns that run side by side")
    max_rounds: int = Field(default=8, ge=1, le=64, description="tool rounds before an answer is asked for")
    idle_hours: float = Field(default=3.0, ge=0, description="a chat rests this long: a new conversation; 0: never")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value:
            try:
                ZoneInfo(value)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise ValueError("an IANA time zone such as Asia/Riyadh") from error
        return value


class ModelSettings(Section):
    provider: ProviderName = "offline"
    name: str = ""
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    context_tokens: int = Field(default=0, ge=0, description="0: what the model is known to take")
    timeout_seconds: float = Field(default=120.0, gt=0)


class ReadlogSettings(Section):
    keep: Literal["all", "allowed"] = "all"


class HeartbeatSettings(Section):
    enabled: bool = True
    target: str = "owner"


class _Settings(Section):
    agent: AgentSettings = AgentSettings()
    model: ModelSettings = ModelSettings()
    readlog: ReadlogSettings = ReadlogSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()


def _channels_section() -> type[Section]:
    fields: dict[str, Any] = {name: (settings_class(name), settings_class(name)()) for name in CHANNELS}
    return create_model("ChannelsSettings", __base__=Section, **fields)


_Channels = _channels_section()


class Settings(_Settings):
    """Everything in config.toml. `channels` has a field for each channel of the registry."""

    channels: Any = Field(default_factory=_Channels)

    @field_validator("channels", mode="before")
    @classmethod
    def _typed_channels(cls, value: Any) -> Any:
        return value if isinstance(value, _Channels) else _Channels.model_validate(value)

    def channel(self, name: str) -> Any:
        """The settings of one channel, an instance of the class its folder declares."""
        return getattr(self.channels, name)

    @property
    def zone(self) -> ZoneInfo:
        """The owner's zone: the setting, else the machine's, else UTC."""
        return ZoneInfo(self.agent.timezone or machine_zone())


def machine_zone() -> str:
    """The IANA name of this machine's zone: `TZ`, else what /etc/localtime points to, else `UTC`."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        target = os.path.realpath("/etc/localtime")
        name = target.partition("zoneinfo/")[2]
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
    return name


def home_folder(given: str | None) -> Path:
    """`--home`, else `$HUDHUD_HOME`, else `~/.hudhud`."""
    return Path(given or os.environ.get("HUDHUD_HOME") or Path.home() / ".hudhud").expanduser().absolute()


def load_settings(path: Path) -> Settings:
    """Reads config.toml; a missing file means the defaults. Raises SettingsError with one line for each fault."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}). Check its owner and rights.") from error
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}.") from error
    try:
        return Settings.model_validate(_with_environment(data, path))
    except ValidationError as error:
        raise SettingsError("\n".join(f"{path}: {_sentence(item)}" for item in error.errors())) from error


def _with_environment(value: Any, path: Path, key: str = "") -> Any:
    """Replaces `env:NAME` by the variable's value, at any depth."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {k: _with_environment(v, path, f"{key}.{k}" if key else k) for k, v in items.items()}
    if isinstance(value, str) and value.startswith("env:"):
        name = value[4:]
        if name not in os.environ:
            raise SettingsError(f"{path}: [{key}] names the environment variable {name}, which is not set.")
        return os.environ[name]
    return value


def _sentence(item: Any) -> str:
    """One validation fault as one sentence: key, what was found, what is allowed."""
    location = [str(part) for part in item["loc"]]
    key = ".".join(location)
    if item["type"] == "extra_forbidden":
        return f"unknown key `{key}`. Allowed there: {', '.join(_allowed_keys(location[:-1]))}."
    found = "a secret" if _is_secret(key) else repr(item["input"])
    wanted = item.get("ctx", {}).get("error") or item["msg"]
    return f"`{key}` is {found}; allowed: {str(wanted).removeprefix('Input should be ')}."


def _is_secret(key: str) -> bool:
    return key.rsplit(".", 1)[-1] in {"token", "api_key"}


def _allowed_keys(location: list[str]) -> list[str]:
    model: Any = Settings
    for part in location:
        if model is Settings and part == "channels":
            model = _Channels
            continue
        fields = getattr(model, "model_fields", {})
        model = fields[part].annotation if part in fields else None
    return list(getattr(model, "model_fields", {}))
