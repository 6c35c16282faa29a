"""Typed settings. A bad `config.toml` names the key, what was found and what is allowed."""

from __future__ import annotations

import os
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from agent.limits import MODEL_RETRY_PAUSES_SECONDS
from channels.registry import CHANNELS, settings_class

if TYPE_CHECKING:
    from heartbeat.types import Defaults

ProviderName = Literal["offline", "anthropic", "openai", "deepseek", "ollama"]


class SettingsError(Exception):
    """One or more settings are wrong; `str()` names each key, what was found, what is allowed, one a line."""


class Section(BaseModel):
    """A table of config.toml: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentSettings(Section):
    name: str = "Hudhud"
    timezone: str = Field(default="", description="IANA name; empty: the machine's zone")
    language: Literal["", "ar", "en"] = Field(
        default="", description="the language of notices; empty: that of the message itself"
    )
    workers: int = Field(default=8, ge=1, le=64, description="turns that run side by side")
    max_rounds: int = Field(default=8, ge=1, le=64, description="tool rounds before an answer is asked for")
    idle_hours: float = Field(
        default=3.0, ge=0, allow_inf_nan=False, description="a chat rests this long: a new conversation; 0: never"
    )
    join_seconds: float = Field(
        default=1.5, ge=0, le=30, allow_inf_nan=False, description="a part of an album or of a cut text waits for more"
    )

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
    timeout_seconds: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    images: bool = Field(default=True, description="the model takes pictures")
    retry_seconds: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = MODEL_RETRY_PAUSES_SECONDS


class BudgetSettings(Section):
    daily_usd: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="0: no limit")
    daily_tokens: int = Field(default=0, ge=0, description="0: no limit")


class McpServerSettings(Section):
    """A program to start (`command`), or the `url` of a server that runs: one of the two."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    url: str = ""

    @model_validator(mode="after")
    def _one_way(self) -> McpServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError("a table with either `command` or `url`")
        return self


class McpSettings(Section):
    servers: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")], McpServerSettings] = Field(
        default_factory=dict
    )


class SafetySettings(Section):
    confirm: Literal["risky", "always"] = "risky"


class TranscribeSettings(Section):
    """What puts recordings into words: a program, or a server that speaks OpenAI's protocol."""

    command: tuple[str, ...] = Field(default=(), description="`{file}` is the recording, else it comes last")
    base_url: str = ""
    model: str = "whisper-1"
    api_key: SecretStr = SecretStr("")

    @property
    def is_on(self) -> bool:
        return bool(self.command or self.base_url)

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        return tuple(shlex.split(value)) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_way(self) -> TranscribeSettings:
        if self.command and self.base_url:
            raise ValueError("either `command` or `base_url`")
        return self


class ReadlogSettings(Section):
    keep: Literal["all", "allowed"] = "all"


class MemorySettings(Section):
    """`consolidate` and `reflect`: when these jobs run, in the forms of heartbeat.md; empty: not by themselves."""

    consolidate: str = Field(default="Weekly (Mon 00:30)", description="the weeks that have ended are summed up")
    reflect: str = Field(default="Daily (03:00)", description="facts are taken from the days, opinions kept up to date")
    folders: tuple[str, ...] = Field(default=(), description="folders beside the workspace that are searched too")
    embeddings: Literal["off", "bundled"] = Field(
        default="off", description="search by meaning too, with the model of the extra `semantic`"
    )

    @field_validator("consolidate", "reflect")
    @classmethod
    def _as_a_heading(cls, value: str) -> str:
        from heartbeat.headings import BadSchedule, parse_schedule

        try:
            if value.strip():
                parse_schedule(value)
        except BadSchedule as error:
            raise ValueError("a schedule such as Daily (03:00) or Weekly (Mon 00:30); empty: not by itself") from error
        return value.strip()

    @field_validator("folders")
    @classmethod
    def _are_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            try:
                known = bool(path.strip()) and "\0" not in path and bool(Path(path).expanduser())
            except RuntimeError:  # ~ of a user that is not there
                known = False
            if not known:
                raise ValueError("a list of paths; `~` is your own home folder")
        return value

    def places(self, home: Path) -> tuple[Path, ...]:
        """The folders; those that are written without a root lie beside config.toml."""
        return tuple(home / Path(path).expanduser() for path in self.folders)


class HeartbeatSettings(Section):
    enabled: bool = True
    target: str = "owner"
    quiet: str = Field(default="", description="hours in which only urgent alerts are sent: `22:00-07:00`; empty: none")
    daily_runs: int = Field(default=0, ge=0, description="runs that the clock starts in one day; 0: no limit")
    daily_tokens: int = Field(default=0, ge=0, description="tokens of all runs in one day; 0: no limit")
    grace: str = Field(default="2h", description="how late a run may still begin")
    catchup: Literal["once", "skip"] = Field(default="once", description="what is made up after a stop or sleep")

    @field_validator("target")
    @classmethod
    def _known_target(cls, value: str) -> str:
        channel, _, chat = value.partition(":")
        if value not in {"owner", "none"} and not (channel in CHANNELS and chat):
            raise ValueError("`owner`, `none` or `<channel>:<chat>`")
        return value

    @field_validator("quiet", "grace")
    @classmethod
    def _as_in_heartbeat_md(cls, value: str, info: ValidationInfo) -> str:
        from heartbeat.grammar import read_marker
        from heartbeat.headings import BadSchedule

        try:
            if value or info.field_name == "grace":
                read_marker(str(info.field_name), value)
        except BadSchedule as error:
            raise ValueError(
                "hours such as 22:00-07:00" if info.field_name == "quiet" else "such as 30m or 2h"
            ) from error
        return value

    @property
    def defaults(self) -> Defaults:
        """What counts for a job that does not say otherwise."""
        from heartbeat.grammar import read_marker
        from heartbeat.types import Defaults

        return Defaults(
            target=self.target,
            catchup=self.catchup,
            daily_runs=self.daily_runs,
            daily_tokens=self.daily_tokens,
            **read_marker("grace", self.grace),
            **(read_marker("quiet", self.quiet) if self.quiet else {}),
        )


class _Settings(Section):
    agent: AgentSettings = AgentSettings()
    model: ModelSettings = ModelSettings()
    budget: BudgetSettings = BudgetSettings()
    readlog: ReadlogSettings = ReadlogSettings()
    safety: SafetySettings = SafetySettings()
    transcribe: TranscribeSettings = TranscribeSettings()
    mcp: McpSettings = Field(default_factory=McpSettings)
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    memory: MemorySettings = MemorySettings()


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
        sentences = "\n".join(f"{path}: {_sentence(item, data)}" for item in error.errors())
    # Not with its cause: that one shows what was found, secrets too.
    raise SettingsError(sentences)


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


def _sentence(item: Any, data: Any) -> str:
    """One validation fault as one sentence: key, what was found, what is allowed."""
    location = [str(part) for part in item["loc"]]
    key = ".".join(location)
    if item["type"] == "extra_forbidden":
        return f"unknown key `{key}`. Allowed there: {', '.join(_allowed_keys(location[:-1]))}."
    wanted = str(item.get("ctx", {}).get("error") or _WANTED.get(item["type"]) or item["msg"])
    return f"`{key}` is {_found(item, data)}; allowed: {wanted.removeprefix('Input should be ')}."


_WANTED = {"model_type": "a table", "tuple_type": "a list", "string_type": "a text", "finite_number": "a finite number"}
"""Where the library's own words speak of its classes."""


def _found(item: Any, data: Any) -> str:
    """What stands in the file: never a secret, never what came from the environment, nothing of a whole table."""
    found = item["input"]
    if _is_secret(".".join(str(part) for part in item["loc"])):
        return "a secret"
    if isinstance(found, dict):
        return "a table"
    if isinstance(found, list | tuple):
        return "a list"
    inside = data
    for part in item["loc"]:
        try:
            inside = inside[part]
        except (KeyError, IndexError, TypeError):
            return repr(found)
    return repr(inside)


def _is_secret(key: str) -> bool:
    parts = key.split(".")
    return parts[-1] in {"token", "api_key"} or "env" in parts


def _allowed_keys(location: list[str]) -> list[str]:
    model: Any = Settings
    for part in location:
        if model is Settings and part == "channels":
            model = _Channels
            continue
        fields = getattr(model, "model_fields", {})
        model = fields[part].annotation if part in fields else None
    return list(getattr(model, "model_fields", {}))


def known_secrets(section: object) -> list[str]:
    """Every secret value of the settings: keys and tokens, what servers of tools get as variables, and the passwords
    and queries of addresses."""
    if isinstance(section, SecretStr):
        return [section.get_secret_value()]
    if isinstance(section, McpServerSettings):
        _, mark, query = section.url.partition("?")
        return [*section.env.values(), *([f"{mark}{query}"] if query else [])]
    if isinstance(section, BaseModel):
        return [secret for name in type(section).model_fields for secret in known_secrets(getattr(section, name))]
    if isinstance(section, dict):
        return [secret for inner in cast("dict[str, object]", section).values() for secret in known_secrets(inner)]
    return []
